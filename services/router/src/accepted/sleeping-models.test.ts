import { silentLogger } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import { RecordedResponses, requestContext } from '@tutti/tensor/testing'
import t from 'tap'
import {
  chain,
  ensembleRevision,
  modelRevision,
  oneToOne,
  quiet,
  request,
  ScriptedReplicas,
  type ScriptedVersion,
} from '../testing/index.ts'
import { AcceptedRevisions, type RevisionObject } from './accepted-revisions.ts'

const LOAD_MS = 60_000

const accepted = (model: string, o: { readonly revision?: string; readonly start?: string } = {}) =>
  modelRevision({
    name: `${model}-1`,
    model,
    config: oneToOne,
    versions: { 1: o.revision ?? 'r' },
    sleep: { loadMs: LOAD_MS, ...(o.start !== undefined && { start: o.start }) },
  })

const version = (model: string, revision = 'r'): ScriptedVersion => ({
  model,
  revision,
  config: oneToOne,
})

/** A router whose accepted Models may sleep, and to which replicas come as a test says. */
function open(objects: readonly RevisionObject[], o: { readonly maxHeldCalls?: number } = {}) {
  const clock = createManualClock()
  const told = { changes: 0 }
  const replicas = new ScriptedReplicas({
    servesAccepted: true,
    awaitsSteps: true,
    clock,
    wantedChanged: () => {
      told.changes += 1
    },
    ...o,
  })
  const { router } = replicas
  const revisions = new AcceptedRevisions({ log: silentLogger })
  const accept = (...more: readonly RevisionObject[]): void => {
    for (const one of more) revisions.put(one)
    router.view.setAccepted(revisions.current)
  }
  accept(...objects)
  return {
    replicas,
    router,
    clock,
    told,
    accept,
    ask: (
      model: string,
      o: { readonly signal?: AbortSignal; readonly deadlineAt?: number } = {},
    ) => {
      const sink = new RecordedResponses()
      const input = model === 'e' ? 'IN' : 'X'
      const { signal = new AbortController().signal } = o
      router.resolve(model, '').execute(request(input), sink, { ...o, signal })
      return sink
    },
  }
}

/** Returns the failure of a request; undefined if it did not, or waits. */
const failureOf = ({ responses }: RecordedResponses): ServeError | undefined =>
  responses.at(-1)?.error

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

await t.test('a request to a Model that sleeps waits for its first replica', async (t) => {
  const { replicas, router, ask, clock, told } = open([accepted('m')])
  t.same(router.view.served, {
    models: [{ name: 'm', versions: [{ version: 1, revisions: ['r'] }] }],
    accepted: ['m-1'],
  })
  t.ok(router.isReady(), 'a Model that sleeps is no fault')
  t.ok(await router.isModelReady('m', ''), 'its requests are answered')
  t.same(router.wantedModels(), [])
  const sink = ask('m')
  await settle()
  t.same(router.wantedModels(), ['m'])
  t.equal(told.changes, 1)
  t.same([sink.responses.length, failureOf(sink)], [0, undefined])
  replicas.serve('a', [version('m')])
  await settle()
  t.match(sink.responses, [{ final: true, outputs: [{ name: 'Y' }] }])
  t.same(router.wantedModels(), [])
  t.equal(clock.pending, 0)
})

await t.test(
  'a replica that loads, or drains, leaves requests waiting; one that failed ends them',
  async (t) => {
    const { replicas, router, ask } = open([accepted('m')])
    const describe = (state: 'LOADING' | 'UNAVAILABLE', reason: string): void => {
      const described = replicas.describe('a')
      const models = described.models.map((model) => ({
        ...model,
        versions: model.versions.map((one) => ({ ...one, state, reason })),
      }))
      router.view.describe({ ...described, models }, { statistics: async () => [] })
    }
    replicas.serve('a', [version('m')], { quietly: true })
    describe('LOADING', '')
    const first = ask('m')
    await settle()
    t.equal(failureOf(first), undefined)
    describe('UNAVAILABLE', 'unloaded')
    t.equal(failureOf(first), undefined, 'no fault')
    describe('UNAVAILABLE', 'Internal: no memory')
    t.match(failureOf(first), { reason: 'MODEL_NOT_READY', message: /no memory/ })
    replicas.kill('a')
    const second = ask('m')
    await settle()
    t.equal(failureOf(second), undefined, 'the next replica may do better')
    t.same(router.wantedModels(), ['m'])
  },
)

await t.test(
  'a hold ends with how far the start is, in time or just before the deadline',
  async (t) => {
    const { ask, accept, clock, router } = open([accepted('m')])
    const patient = ask('m')
    const hurried = ask('m', { deadlineAt: clock.now() + 5000 })
    clock.advance(4899)
    t.equal(failureOf(hurried), undefined)
    accept(accepted('m', { start: 'a pod fetches the files' }))
    clock.advance(1)
    t.match(failureOf(hurried), {
      code: 'UNAVAILABLE',
      reason: 'MODEL_STARTING',
      message: "model 'm' is starting: waited 4.9 s for its first replica: a pod fetches the files",
      details: { model: 'm', version: '1' },
    })
    t.equal(failureOf(patient), undefined)
    clock.advance(LOAD_MS)
    t.match(failureOf(patient), { reason: 'MODEL_STARTING' })
    t.same(router.wantedModels(), [], 'no request waits')
    t.equal(clock.pending, 0)
  },
)

await t.test('a caller that leaves waits no more, and holds are bounded', async (t) => {
  const { ask, router, clock } = open([accepted('m')], { maxHeldCalls: 2 })
  const cancel = new AbortController()
  const first = ask('m', { signal: cancel.signal })
  const second = ask('m')
  const third = ask('m')
  t.match(failureOf(third), { reason: 'OVERLOADED', code: 'RESOURCE_EXHAUSTED' })
  cancel.abort(new ServeError('CANCELLED', 'left'))
  t.match(failureOf(first), { reason: 'CANCELLED' })
  const fourth = ask('m')
  t.same([failureOf(second), failureOf(fourth)], [undefined, undefined])
  t.same(router.wantedModels(), ['m'])
  clock.advance(LOAD_MS)
  t.same(router.wantedModels(), [])
})

await t.test('a Model that always has pods fails its requests as ever', async (t) => {
  const always = modelRevision({ name: 'm-1', model: 'm', config: oneToOne, versions: { 1: 'r' } })
  const { router, accept, ask, clock } = open([always])
  t.throws(() => router.resolve('m', ''), { message: /no replica serves model 'm'/ })
  accept(accepted('m'))
  const held = ask('m')
  t.equal(failureOf(held), undefined)
  accept(always)
  for (let attempt = 1; attempt <= 3; attempt++) {
    await settle()
    clock.advance(10)
  }
  t.match(failureOf(held), { reason: 'STEP_UNAVAILABLE' }, 'no pod will be started for it')
})

await t.test('an ensemble waits for its models, which are wanted together', async (t) => {
  const models = ['a', 'b', 'c']
  const ensemble = ensembleRevision({
    name: 'e-1',
    model: 'e',
    config: chain(...models),
    models: Object.fromEntries(models.map((model) => [model, oneToOne])),
  })
  const { router, replicas, ask } = open([
    ...models.map((model) => accepted(model)),
    accepted('other'),
    ensemble,
  ])
  t.same(router.view.served.accepted, ['a-1', 'b-1', 'c-1', 'e-1', 'other-1'])
  const sink = ask('e')
  await settle()
  t.same(router.wantedModels(), models, 'all of the graph, and no other')
  replicas.serve('of-b', [version('b')])
  t.same(router.wantedModels(), ['a', 'c'])
  replicas.serve('of-a', [version('a')])
  await settle()
  await settle()
  t.same(router.wantedModels(), ['c'], 'the request has come so far')
  replicas.serve('of-c', [version('c')])
  await settle()
  await settle()
  t.match(sink.responses, [{ final: true, outputs: [{ name: 'OUT' }] }])
  t.same(
    replicas.deliveries.map(({ replica }) => replica),
    ['of-a', 'of-b', 'of-c'],
  )
  t.same(router.memory, { count: 0, bytesInUse: 0 })
})

await t.test(
  'a request moves to what the new pod serves, if that is the same to clients',
  async (t) => {
    const { replicas, accept, ask } = open([accepted('m')])
    const sink = ask('m')
    replicas.serve('a', [version('m', 'new')])
    await settle()
    t.same([failureOf(sink), sink.responses.length], [undefined, 0], 'it is not accepted yet')
    const newer = { ...accepted('m', { revision: 'new' }), revision: 2 }
    accept({ ...newer, metadata: { ...newer.metadata, name: 'm-2' } })
    await settle()
    t.match(sink.responses, [{ final: true }])
    t.same(
      replicas.deliveries.map(({ envelope }) => envelope.revision),
      ['new'],
    )
  },
)

await t.test('a sequence that starts while its Model sleeps keeps its order', async (t) => {
  const config = `${oneToOne} sequence_batching {}`
  const sleep = { loadMs: LOAD_MS }
  const revision = modelRevision({ name: 's-1', model: 's', config, versions: { 1: 'r' }, sleep })
  const { replicas, router } = open([revision])
  const sinks = ['first', 'second'].map((id, i) => {
    const sink = new RecordedResponses()
    const sequence = { correlationId: 7n, sequenceStart: i === 0, sequenceEnd: i === 1 }
    const context = requestContext({ id, ...sequence })
    router.resolve('s', '').execute({ ...request('X'), context }, sink, quiet)
    return sink
  })
  t.same(router.wantedModels(), ['s'])
  replicas.serve('a', [{ model: 's', revision: 'r', config }])
  for (let i = 0; i < 4; i++) await settle()
  for (const { responses } of sinks) t.match(responses, [{ final: true }])
  t.same(
    replicas.deliveries.map(({ envelope }) => envelope.context.id),
    ['first', 'second'],
  )
})

await t.test('labels that come with the first replica are those of what waited', async (t) => {
  const { replicas, router, ask } = open([accepted('m')])
  const resolved = router.resolve('m', '')
  t.equal(resolved.labels('Y'), undefined)
  const sink = ask('m')
  replicas.serve('a', [version('m')], { quietly: true })
  const { models, ...described } = replicas.describe('a')
  const labelled = models.map((model) => ({ ...model, labels: { Y: ['cat', 'dog'] } }))
  router.view.describe({ ...described, models: labelled }, { statistics: async () => [] })
  await settle()
  t.match(sink.responses, [{ final: true }])
  t.same(resolved.labels('Y'), ['cat', 'dog'])
  replicas.kill('a')
  t.equal(resolved.labels('Y'), undefined, 'they went with it')
})

await t.test(
  'a request that meets the end of the last replica waits for the next one',
  async (t) => {
    const { replicas, router, ask } = open([accepted('m')])
    replicas.serve('a', [version('m')])
    replicas.script = () => {
      replicas.kill('a')
      throw new ServeError('SERVER_STOPPING', 'the step is going away')
    }
    const sink = ask('m')
    await settle()
    t.same([failureOf(sink), sink.responses.length], [undefined, 0])
    t.same(router.wantedModels(), ['m'])
    replicas.script = () => {}
    replicas.serve('b', [version('m')])
    await settle()
    t.match(sink.responses, [{ final: true }])
  },
)
