import { deepStrictEqual, ok } from 'node:assert/strict'
import { silentLogger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { responsesTo } from '@tutti/tensor/testing'
import * as fc from 'fast-check'
import t from 'tap'
import {
  collect,
  ensembleRevision,
  modelRevision,
  oneToOne,
  quiet,
  request,
  ScriptedReplicas,
} from '../testing/index.ts'
import { AcceptedRevisions, type RevisionObject } from './accepted-revisions.ts'

const IO = oneToOne
/** Differs from the other and still fits it. */
const TUNED = `${IO} parameters { key: "k" value { string_value: "v" } }`
const CONFIGS = [IO, TUNED] as const

function ensembleOf(model: string, steps: number): string {
  const tensor = (i: number): string => (i === 0 ? 'X' : i === steps ? 'Y' : `t${i}`)
  const all = Array.from(
    { length: steps },
    (_, i) => `step { model_name: "${model}" model_version: -1
      input_map { key: "X" value: "${tensor(i)}" } output_map { key: "Y" value: "${tensor(i + 1)}" } }`,
  )
  return `platform: "ensemble"
    input { name: "X" data_type: TYPE_FP32 dims: -1 }
    output { name: "Y" data_type: TYPE_FP32 dims: -1 }
    ensemble_scheduling { ${all.join(' ')} }`
}

/** The world of a test: what the operator wrote and what replicas say. */
class World {
  readonly objects = new Map<string, RevisionObject>()
  /** By ControllerRevision. */
  readonly models = new Map<string, Served>()
  /** By replica. */
  readonly replicas = new Map<string, Served>()
  readonly scripted = new ScriptedReplicas({ servesAccepted: true, awaitsSteps: true })
  readonly #revisions = new AcceptedRevisions({ log: silentLogger })
  #count = 0

  acceptModel(served: Served): void {
    const name = this.#nextName(served.model)
    this.models.set(name, served)
    const { model, config, revision } = served
    const versions = { 1: revision }
    this.#put(modelRevision({ name, model, config, revision: this.#count, versions }), true)
  }

  acceptEnsemble(n: number, steps: number, isBroken: boolean): void {
    const name = this.#nextName(`e${n}`)
    const config = ensembleOf(`m${n}`, steps)
    const models = { [`m${n}`]: IO }
    const revision = this.#count
    const object = ensembleRevision({ name, model: `e${n}`, config, revision, models })
    const broken = { ...object, data: { ...Object(object.data), graph: 5 } }
    this.#put(isBroken ? broken : object, !isBroken)
  }

  remove(index: number): void {
    const names = [...this.objects.keys()]
    const name = names[index % Math.max(1, names.length)]
    if (name === undefined) return
    this.objects.delete(name)
    this.models.delete(name)
    this.#revisions.delete(name)
    this.scripted.router.view.setAccepted(this.#revisions.current)
  }

  serve(replica: string, served: Served): void {
    this.replicas.set(replica, served)
    this.scripted.serve(replica, [served])
  }

  kill(replica: string): void {
    if (this.replicas.delete(replica)) this.scripted.kill(replica)
  }

  #nextName(resource: string): string {
    this.#count += 1
    return `${resource}-${this.#count}`
  }

  #put(object: RevisionObject, isGood: boolean): void {
    if (isGood) this.objects.set(object.metadata.name, object)
    this.#revisions.put(object)
    this.scripted.router.view.setAccepted(this.#revisions.current)
  }
}

interface Served {
  readonly model: string
  readonly revision: string
  readonly config: string
}

type Change = (world: World) => void

const small = fc.nat({ max: 2 })
const served = fc
  .tuple(small, small, fc.constantFrom(...CONFIGS))
  .map(([model, revision, config]) => ({ model: `m${model}`, revision: `v${revision}`, config }))
const acceptModel = served.map(
  (one): Change =>
    (world) =>
      world.acceptModel(one),
)
const acceptEnsemble = fc.tuple(small, small, fc.boolean()).map(
  ([n, steps, isBroken]): Change =>
    (world) =>
      world.acceptEnsemble(n, steps + 1, isBroken),
)
const remove = fc.nat().map(
  (index): Change =>
    (world) =>
      world.remove(index),
)
const serve = fc.tuple(small, served).map(
  ([replica, one]): Change =>
    (world) =>
      world.serve(`r${replica}`, one),
)
const kill = small.map(
  (replica): Change =>
    (world) =>
      world.kill(`r${replica}`),
)
const change = fc.oneof(
  { weight: 4, arbitrary: acceptModel },
  { weight: 2, arbitrary: acceptEnsemble },
  { weight: 3, arbitrary: remove },
  { weight: 4, arbitrary: serve },
  { weight: 1, arbitrary: kill },
)

async function ask(replicas: ScriptedReplicas, name: string): Promise<string> {
  replicas.deliveries.length = 0
  try {
    await collect(responsesTo(replicas.router.resolve(name, ''), request('X'), quiet))
    return 'answered'
  } catch (error) {
    return ServeError.from(error).reason
  }
}

/** Checks what is answered, and by whom. */
async function check(world: World): Promise<void> {
  const replicas = world.scripted
  const { accepted } = replicas.router.view.served
  const wanted: string[] = []
  for (const n of [0, 1, 2]) {
    const named = [...world.models].filter(([, one]) => one.model === `m${n}`)
    // If two objects say what a revision is, the newest is right.
    const usable = [...world.replicas].filter(([, served]) => {
      const newest = named.findLast(([, one]) => one.revision === served.revision)
      return newest !== undefined && isSame(newest[1], served)
    })
    const isThere = usable.length > 0
    const reason = named.length === 0 ? 'MODEL_NOT_FOUND' : 'STEP_UNAVAILABLE'
    deepStrictEqual(await ask(replicas, `m${n}`), isThere ? 'answered' : reason)
    checkDeliveries(
      replicas,
      usable.map(([replica]) => replica),
    )
    for (const [name, one] of named) {
      if (usable.some(([, served]) => isSame(one, served))) wanted.push(name)
    }
    const newest = [...world.objects.keys()].filter((name) => name.startsWith(`e${n}-`)).at(-1)
    const answer = await ask(replicas, `e${n}`)
    deepStrictEqual(answer === 'answered', isThere && newest !== undefined)
    checkDeliveries(
      replicas,
      usable.map(([replica]) => replica),
    )
    if (newest === undefined) deepStrictEqual(answer, 'MODEL_NOT_FOUND')
    else if (isThere) {
      wanted.push(newest)
      const steps = Object(world.objects.get(newest)?.data).config.ensemble_scheduling.step
      deepStrictEqual(replicas.deliveries.length, steps.length)
    }
  }
  deepStrictEqual(accepted, wanted.toSorted())
}

function isSame(a: Served, b: Served): boolean {
  return a.model === b.model && a.revision === b.revision && a.config === b.config
}

function checkDeliveries(replicas: ScriptedReplicas, usable: readonly string[]): void {
  for (const { replica } of replicas.deliveries) ok(usable.includes(replica))
}

await t.test(
  'whatever is accepted, removed, rolled out and killed, only what is accepted serves',
  async (t) => {
    await t.resolves(
      fc.assert(
        fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 25 }), async (changes) => {
          const world = new World()
          for (const one of changes) {
            one(world)
            await check(world)
          }
          deepStrictEqual(world.scripted.router.memory.count, 0)
        }),
        { numRuns: 120 },
      ),
    )
  },
)

await t.test('any object is taken or refused, and nothing else changes', async (t) => {
  const revisions = new AcceptedRevisions({ log: silentLogger })
  const good = modelRevision({ name: 'm-1', model: 'm', config: IO, versions: { 1: 'r' } })
  revisions.put(good)
  const before = revisions.current
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(fc.jsonValue(), fc.string(), (data, name) => {
        revisions.put({ metadata: { name, creationTimestamp: '' }, revision: 2, data })
        deepStrictEqual(revisions.current === before, true)
      }),
    ),
  )
  revisions.delete('unknown')
  t.equal(revisions.current, before)
})
