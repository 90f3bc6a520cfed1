// needs: apiserver
import { testFactor } from '@tutti/chassis/testing'
import { type ProxiedRequest, withoutKube } from '@tutti/kube/testing'
import t, { type Test } from 'tap'
import { PHASES, type Phase } from '../testing/case-life.ts'
import { type CasePlace, type CaseRig, openCaseRig } from '../testing/case-rig.ts'

const skip = withoutKube('kube-controller-manager', 'kube-scheduler')
const isWhole = testFactor() > 1
/** Namespaces that live side by side, under one operator. */
const GROUP = isWhole ? 20 : 14
/** After which write the n-th operator dies: nightly after each, else after the first ones and each third of the others. */
const writeOf = (n: number): number => (isWhole || n < 3 ? n : 3 * (n - 2))

/** A namespace, and the number of the write to it that is its operator's last; 0 if none is. */
interface Doomed {
  readonly place: CasePlace
  readonly k: number
}

const isIn = (namespace: string) => (request: ProxiedRequest) =>
  request.isWrite && request.path.includes(`/namespaces/${namespace}/`)

/**
 * One phase, with an operator that dies after its k-th write to each namespace, and another after it. To die there is to write
 * nothing to it from then on; once all namespaces are as far, or at the phase's end, it dies for all of them.
 */
async function crash(t: Test, rig: CaseRig, phase: Phase, group: readonly Doomed[]) {
  const system = group[0]?.place.system ?? ''
  const deaths = new Map<Doomed, Promise<'killed'>>()
  const first = await rig.startOperator(t, {
    system,
    prepare: (proxy) => {
      const die = (namespace: string, k: number): Promise<'killed'> => {
        const killed = Promise.withResolvers<'killed'>()
        const after = (): void => {
          proxy.addRule({ when: isIn(namespace), fault: { type: 'reset' } })
          killed.resolve('killed')
        }
        if (k > 0) proxy.onWrite(k, { after }, isIn(namespace))
        return killed.promise
      }
      for (const one of group) deaths.set(one, die(one.place.namespace, one.k))
    },
  })
  await Promise.all(group.map(({ place }) => phase.act(place)))
  const ends = await Promise.all(
    group.map((one) =>
      Promise.race([deaths.get(one), phase.converged(one.place).then(() => 'converged')]),
    ),
  )
  await first.kill()
  const next = await rig.startOperator(t, { system })
  await Promise.all(group.map(({ place }) => phase.converged(place)))
  await next.atRest()
  const looks = await Promise.all(group.map(({ place }) => place.look()))
  await next.stop()
  const killed = group.filter((_, index) => ends[index] === 'killed').map(({ k }) => k)
  return { looks, killed }
}

/** The last write of a phase whose operator was not killed after all of these: all of the round before were, if none of this was. */
function lastOf(killed: readonly number[], ks: readonly number[]): number {
  return killed.at(-1) ?? Math.max(0, (ks[0] ?? 0) - 1)
}

await t.test(
  'case 4: killed after writes of creation, update and deletion',
  { skip },
  async (t) => {
    const rig = await openCaseRig(t)
    const wanted = new Map<string, readonly string[]>()
    const writes = new Map<string, number>()
    for (let round = 1; writes.size < PHASES.length; round++) {
      const ks = Array.from({ length: GROUP }, (_, index) => writeOf((round - 1) * GROUP + index))
      const group = await Promise.all(ks.map(async (k) => ({ k, place: await rig.openPlace() })))
      for (const phase of PHASES) {
        if (writes.size === PHASES.length) break
        const { looks, killed } = await crash(t, rig, phase, group)
        const { name } = phase
        for (const [index, look] of looks.entries()) {
          if (!wanted.has(name)) wanted.set(name, look)
          t.same(look, wanted.get(name), `${name}, killed after write ${ks[index]}`)
        }
        if (killed.length < ks.filter((k) => k > 0).length) writes.set(name, lastOf(killed, ks))
      }
    }
    t.ok((wanted.get('creation')?.length ?? 0) > 15, 'something is made')
    t.same(wanted.get('deletion'), [], 'all of it is gone in the end')
    t.comment(Object.fromEntries(writes))
    // How many depends on what the operator hears between two of them.
    for (const { name } of PHASES) {
      // Garbage collection deletes what the Router owns.
      const least = name === 'deletion' ? 1 : 8
      t.ok((writes.get(name) ?? 0) >= least, `${name} is many writes`)
    }
  },
)
