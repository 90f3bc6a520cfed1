// needs: apiserver
import { type FaultRule, type ProxiedRequest, withoutKube } from '@tutti/kube/testing'
import t, { type Test } from 'tap'
import { begin, liveIn, nothingLeft } from '../testing/case-life.ts'
import { type CasePlace, openCaseRig } from '../testing/case-rig.ts'
import { isGone } from '../testing/namespaced.ts'
import { sideBySide } from '../testing/side-by-side.ts'

const skip = withoutKube('kube-controller-manager', 'kube-scheduler')

/** Every other request that fits, some dozen in all. */
function everyOther(
  fits: (request: ProxiedRequest) => boolean,
  fault: FaultRule['fault'],
): FaultRule {
  let seen = 0
  const when = (request: ProxiedRequest): boolean => fits(request) && seen++ % 2 === 0
  return { isWatch: false, when, times: 12, fault }
}

const isWrite = ({ isWrite: writes }: ProxiedRequest): boolean => writes
const isAny = (): boolean => true

/** By what the operator meets while it makes, changes and deletes. */
const FAULTS: Readonly<Record<string, FaultRule>> = {
  '429 with Retry-After': everyOther(isAny, { type: 'answer', status: 429, retryAfter: 1 }),
  '500': everyOther(isAny, { type: 'answer', status: 500 }),
  '504': everyOther(isAny, { type: 'answer', status: 504 }),
  'a conflict at every other write': everyOther(isWrite, { type: 'answer', status: 409 }),
  'answers of writes that are lost': everyOther(isWrite, { type: 'lose' }),
}

/** A change, and that it arrives. */
async function edit(place: CasePlace, maxBatchSize: number): Promise<void> {
  await place.applyModel('yolo', { maxBatchSize })
  await place.ready('models', 'yolo')
}

async function setRouters(place: CasePlace, replicas: number): Promise<void> {
  await place.plain.patch(place.path('routers', 'default'), { spec: { scaling: { replicas } } })
  const path = place.path('deployments', 'tutti-router')
  await place.plain.until(path, (found) => found?.['status']?.readyReplicas === replicas)
}

/** Tells whether a watch goes on from a version. */
function goesOn({ query }: ProxiedRequest): boolean {
  return query.get('sendInitialEvents') !== 'true'
}

await t.test('a server that fails, and one that is behind', { skip }, async (t) => {
  const rig = await openCaseRig(t)
  const before410 = (type: 'answer' | 'watch-error') => async (t: Test) => {
    const { place, operator } = await begin(t, rig)
    await place.applyModel('other')
    await place.ready('models', 'other')
    operator.proxy.freezeWatches()
    await place.plain.delete(place.path('models', 'other'))
    await place.plain.until(place.path('deployments', 'other-step'), isGone)
    await place.applyModel('yolo', { maxBatchSize: 2 })
    const rule = { isWatch: true, when: goesOn, times: operator.proxy.watches }
    operator.proxy.addRule({ ...rule, fault: { type, status: 410 } })
    operator.proxy.cutWatches()
    operator.proxy.thawWatches()
    await place.ready('models', 'yolo')
    await operator.atRest()
    t.equal(await operator.metrics.read('cache_objects{resource="models"}'), 1)
    t.equal(await operator.metrics.read('cache_objects{resource="deployments"}'), 2)
  }
  await sideBySide(t, {
    'case 6: watches are reset, or fall silent': async (t: Test) => {
      const { place, operator } = await begin(t, rig, { idleMs: 5000 })
      operator.proxy.cutWatches()
      await edit(place, 2)
      operator.proxy.freezeWatches()
      await place.applyModel('yolo', { maxBatchSize: 3 })
      const { requests, watches } = operator.proxy
      // Silent ones are given up and opened anew, though no connection was closed.
      while (operator.proxy.requests < requests + watches) {
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      operator.proxy.thawWatches()
      await place.ready('models', 'yolo')
    },

    'case 7: 410 for a watch, as its answer': before410('answer'),
    'case 7: 410 for a watch, as its first event': before410('watch-error'),

    'case 8: a restart onto a state of the past changes nothing': async (t: Test) => {
      const { place, operator } = await begin(t, rig)
      await place.applyModel('gone')
      await place.ready('models', 'gone')
      await place.applyEnsemble('ens', 'yolo')
      await place.ready('ensembles', 'ens')
      await operator.atRest()
      const past = await operator.proxy.remember()
      await place.plain.delete(place.path('models', 'gone'))
      await place.plain.until(place.path('deployments', 'gone-step'), isGone)
      await place.applyModel('late')
      await place.ready('models', 'late')
      await edit(place, 2)
      await place.applyEnsemble('ens', 'yolo', { maxBatchSize: 2 })
      await place.ready('ensembles', 'ens')
      await setRouters(place, 2)
      await operator.atRest()
      await operator.stop()
      const before = await place.look()
      const next = await place.startOperator(t, { prepare: (proxy) => proxy.rewind(past) })
      await next.atRest({ isBehind: true })
      t.same(await place.look(), before, 'in the past')
      next.proxy.present()
      t.ok(
        next.passes.some(({ controller }) => controller === 'router'),
        'it has looked',
      )
      await place.applyModel('late', { maxBatchSize: 2 })
      await place.ready('models', 'late')
      await next.atRest()
      const names = (await place.plain.list(place.path('deployments'))).map(
        ({ metadata }) => metadata.name,
      )
      t.same(names, ['late-step', 'tutti-router', 'yolo-step'])
    },

    'case 8: a router set of the past is not made again': async (t: Test) => {
      const { place, operator } = await begin(t, rig)
      const past = await operator.proxy.remember()
      await place.plain.delete(place.path('models', 'yolo'))
      await nothingLeft(place)
      await operator.stop()
      const next = await place.startOperator(t, { prepare: (proxy) => proxy.rewind(past) })
      await next.atRest({ isBehind: true })
      t.same(await place.look(), [], 'in the past')
      next.proxy.present()
      await next.atRest()
      t.same(await place.look(), [])
    },

    'case 8: a router set is not deleted for a past without Models': async (t: Test) => {
      const { place, operator } = await begin(t, rig)
      // The past: the Model is gone, and its router is about to go.
      const gate = Promise.withResolvers<void>()
      const isDeleting = Promise.withResolvers<void>()
      const when = ({ path }: ProxiedRequest): boolean => {
        isDeleting.resolve()
        return path.includes(place.namespace)
      }
      const fault = { type: 'wait', until: gate.promise } as const
      operator.proxy.addRule({ method: 'DELETE', when, fault })
      await place.plain.delete(place.path('models', 'yolo'))
      await isDeleting.promise
      const past = await operator.proxy.remember()
      gate.resolve()
      await nothingLeft(place)
      await edit(place, 2)
      await operator.atRest()
      await operator.stop()
      const before = await place.look()
      const next = await place.startOperator(t, { prepare: (proxy) => proxy.rewind(past) })
      await next.atRest({ isBehind: true })
      t.same(await place.look(), before, 'in the past')
      next.proxy.present()
      await edit(place, 3)
    },

    'case 9: another Model of the name, with nothing seen in between': async (t: Test) => {
      const { place, operator } = await begin(t, rig)
      const { metadata: first } = await place.plain.get(place.path('models', 'yolo'))
      operator.proxy.freezeWatches()
      await place.plain.delete(place.path('models', 'yolo'))
      const { metadata: second } = await place.applyModel('yolo')
      t.not(second.uid, first.uid)
      operator.proxy.thawWatches()
      await place.ready('models', 'yolo')
      await operator.atRest()
      for (const plural of ['deployments', 'services', 'serviceaccounts', 'controllerrevisions']) {
        const own = await place.plain.list(
          `${place.path(plural)}?labelSelector=tutti.dev%2Fmodel%3Dyolo`,
        )
        t.ok(own.length > 0, plural)
        for (const { metadata } of own) t.equal(metadata.ownerReferences[0].uid, second.uid, plural)
      }
    },

    'case 14: each verb is refused, or done and not answered': async (t: Test) => {
      const lives = Object.entries(FAULTS).map(async ([name, rule]) => {
        const place = await rig.openPlace()
        return { name, looks: await liveIn(t, place, (proxy) => void proxy.addRule(rule)) }
      })
      const wanted = await liveIn(t, await rig.openPlace())
      for (const { name, looks } of await Promise.all(lives)) t.same(looks, wanted, name)
    },
  })

  // The last one: who watches beside the operator is cut off too.
  await t.test('case 5: the API server is killed in the middle, and comes back', async (t) => {
    const place = await rig.openPlace()
    const killed = Promise.withResolvers<void>()
    const operator = await place.startOperator(t, {
      prepare: (proxy) =>
        proxy.onWrite(5, {
          before: async () => {
            await rig.server.kill()
            killed.resolve()
          },
        }),
    })
    await place.applyModel('yolo')
    await killed.promise
    await rig.server.restart()
    await place.ready('models', 'yolo')
    await operator.atRest()
    await place.plain.delete(place.path('models', 'yolo'))
    await nothingLeft(place)
  })
})
