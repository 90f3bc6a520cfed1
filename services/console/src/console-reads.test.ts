import { type Clock, systemClock } from '@tutti/chassis'
import { createManualClock, until } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import { parseModelConfig } from '@tutti/model-config'
import { ScriptedBackend } from '@tutti/serving/testing'
import { StatisticsRecorder } from '@tutti/telemetry'
import t from 'tap'
import type { UnreadyResource } from './api/cluster.ts'
import { ConsoleReads } from './console-reads.ts'
import type { ClusterSource, ConsoleSource } from './console-source.ts'
import { readReplicas } from './read-replicas.ts'

const io =
  'input { name: "X" data_type: TYPE_FP32 dims: 1 } output { name: "Y" data_type: TYPE_FP32 dims: 1 }'
const step = (name: string) => `step { model_name: "${name}" model_version: -1
  input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } }`
const WRITTEN: Readonly<Record<string, string>> = {
  add: `backend: "scripted" ${io}`,
  hidden: `backend: "scripted" ${io}`,
  other: `backend: "scripted" ${io}`,
  ens: `platform: "ensemble" ${io} ensemble_scheduling { ${step('add')} ${step('add')} ${step('hidden')} }`,
}
const CONFIGS = Object.fromEntries(
  Object.entries(WRITTEN).map(([name, text]) => [
    name,
    { ...parseModelConfig(text, 'config.pbtxt'), name },
  ]),
)

const TIMES = { requests: 1, failures: 0, queueMs: 1, transferMs: 2, computeMs: 3 }
const VERSION = { version: '1', revision: 'r', state: 'READY', reason: '' }
const REPLICAS: Pick<ConsoleSource, 'replicasOf' | 'replicaTotals' | 'otherRouters'> = {
  replicasOf: (models) =>
    [...models].flatMap((model) => {
      const one = { replica: `${model}-1`, host: 'pod', reachedOver: 'nats', inFlight: 2 }
      const versions = [{ ...VERSION, model }]
      return model === 'ens' ? [] : [{ ...one, state: 'taking work', load: undefined, versions }]
    }),
  replicaTotals: () => [
    { replica: 'add-1', model: 'add', ensemble: 'ens', step: 'first', ...TIMES },
    { replica: 'add-1', model: 'add', ensemble: 'ens', step: 'second', ...TIMES },
    { replica: 'add-1', model: 'add', ensemble: '', step: '', ...TIMES },
    { replica: 'hidden-1', model: 'hidden', ensemble: 'ens', step: 'third', ...TIMES },
  ],
  otherRouters: () => [{ name: 'router-b', host: 'pod-b' }],
}

/** Prepares the reads of a caller who sees all models but `hidden`. */
function setup(
  o: {
    readonly failure?: ServeError
    readonly hangs?: boolean
    readonly clock?: Clock
    readonly cluster?: ClusterSource
  } = {},
) {
  const backend = new ScriptedBackend({})
  backend.index = ['add', 'other', 'ens'].map((name) => ({
    name,
    version: '1',
    state: 'READY',
    reason: '',
  }))
  // As an identity's: each question of it counts in a quota.
  backend.statistics = () => Promise.reject(new Error('asked for its statistics'))
  const asked: string[][] = []
  const reads = new ConsoleReads({
    source: {
      find: (name) => {
        const config = CONFIGS[name]
        const kind = name === 'ens' ? 'ensemble' : 'model'
        return config && { name, kind, config }
      },
      stepTotals: () => [],
      ...REPLICAS,
      statisticsOf: async (names) => {
        asked.push([...names])
        if (o.failure !== undefined) throw o.failure
        if (o.hangs === true) await new Promise(() => {})
        return [...names].map((name) => {
          const recorder = new StatisticsRecorder({ name, version: '1', clock: systemClock })
          const times = name === 'ens' ? 2 : 1
          for (let i = 0; i < times; i += 1) {
            recorder.recordFailure({ requestNs: 1, reason: 'OTHER' })
          }
          return recorder.snapshot()
        })
      },
    },
    cluster: o.cluster,
    server: { name: 's', version: '1', scope: 'a test', host: 'pod-a' },
    mayInfer: false,
    http: undefined,
    clock: o.clock ?? systemClock,
  })
  return { reads, backend, asked }
}

await t.test('the list asks for the counts of its models at once', async (t) => {
  const { reads, backend, asked } = setup()
  const { models, countsFailure } = await reads.overview(backend)
  t.same(asked, [['add', 'other', 'ens']])
  t.equal(countsFailure, '')
  const failures = models.map(({ counts }) => counts?.failures)
  t.same(failures, [1, 1, 1], 'an ensemble counts a failure twice in its statistics')
})

await t.test('a model asks for itself and the models of its steps that may be seen', async (t) => {
  const { reads, backend, asked } = setup()
  const { graph } = await reads.model(backend, 'ens')
  await reads.model(backend, 'add')
  t.same(asked, [['ens', 'add'], ['add']])
  t.same(
    graph?.steps.map(({ state, failures }) => [state, failures]),
    [
      ['ready', 1],
      ['ready', 1],
      ['unknown', undefined],
    ],
  )
  await t.rejects(reads.model(backend, 'hidden'), { message: "model 'hidden' is not found" })
  t.equal(asked.length, 2)
})

await t.test('while counts cannot be had, states and graphs are there all the same', async (t) => {
  const failure = new ServeError('STEP_LOST', 'step a does not answer')
  const { reads, backend } = setup({ failure })
  const { models, countsFailure } = await reads.overview(backend)
  t.equal(countsFailure, 'step a does not answer')
  t.same(
    models.map(({ name, counts }) => [name, counts]),
    ['add', 'other', 'ens'].map((name) => [name, undefined]),
  )
  const detail = await reads.model(backend, 'ens')
  t.equal(detail.countsFailure, 'step a does not answer')
  t.equal(detail.counts, undefined, 'not zero: the next figures would look like a burst')
  t.match(detail.graph?.steps, [{ state: 'ready', failures: undefined }, {}, {}])
})

await t.test('replicas are those of a model, or of the steps that may be seen', async (t) => {
  const { reads, backend } = setup()
  const model = await reads.model(backend, 'add')
  t.match(model.replicas, {
    all: [{ replica: 'add-1', host: 'pod', totals: [{ step: '', requests: 3, computeMs: 9 }] }],
    leftOut: 0,
  })
  const { replicas } = await reads.model(backend, 'ens')
  t.match(replicas?.all, [{ replica: 'add-1', totals: [{ step: 'first' }, { step: 'second' }] }])
  t.equal(replicas?.all.length, 1, 'not those of a model that is hidden')
  t.same((await reads.model(backend, 'other')).replicas?.all[0]?.totals, [])
})

await t.test('identities without control learn nothing of replicas and routers', async (t) => {
  const { reads, backend } = setup()
  const { host, others } = (await reads.overview(backend)).server
  t.same([host, others], ['pod-a', [{ name: 'router-b', host: 'pod-b' }]])
  Object.assign(backend, { identity: { name: 'ci', mayControl: false } })
  const { server } = await reads.overview(backend)
  t.match(server, { name: 's', scope: 'a test', host: undefined, others: undefined })
  t.equal((await reads.model(backend, 'add')).replicas, undefined)
})

await t.test('of many replicas the page gets some, and how many are missing', async (t) => {
  const [one] = REPLICAS.replicasOf(new Set(['add']))
  if (one === undefined) throw new Error('none')
  const many = Array.from({ length: 1000 }, (_, i) => ({ ...one, replica: `add-${i}` }))
  const source = { ...REPLICAS, replicasOf: () => many }
  const { all, leftOut } = readReplicas(source, { models: new Set(['add']), ensemble: undefined })
  t.same([all.length, leftOut], [200, 800])
})

await t.test('a step that hangs does not hold up what is known without it', async (t) => {
  const clock = createManualClock()
  const { reads, backend } = setup({ clock, hangs: true })
  const asked = reads.model(backend, 'add')
  await until('it waits', () => clock.pending === 1)
  clock.advance(1500)
  const { countsFailure, replicas } = await asked
  t.equal(countsFailure, 'a step has not answered within 1500 ms')
  t.equal(replicas?.all.length, 1)
  t.equal(clock.pending, 0)
})

const UNREADY: UnreadyResource = {
  kind: 'Model',
  name: 'add-1',
  model: 'add',
  state: 'not ready',
  reason: 'OOMKilled',
  message: 'no memory',
  help: 'https://tutti.dev/docs/conditions/#model',
}
const clusterOf = (unready: ClusterSource['unready']) => ({ namespace: 'shop', unready })

await t.test('what a cluster does not run is told, a model only about itself', async (t) => {
  const other = { ...UNREADY, name: 'gone', model: 'gone' }
  const { reads, backend } = setup({ cluster: clusterOf(async () => [UNREADY, other]) })
  const whole = { namespace: 'shop', unready: [UNREADY, other], leftOut: 0, failure: '' }
  t.same((await reads.overview(backend)).cluster, whole)
  t.same((await reads.model(backend, 'add')).cluster, { ...whole, unready: [UNREADY] })
  t.same((await reads.model(backend, 'other')).cluster, { ...whole, unready: [] })
  const mayCall = (model: string): boolean => model === other.model
  Object.assign(backend, { identity: { name: 'ci', mayControl: true, mayCall } })
  const own = { ...whole, unready: [other] }
  t.same((await reads.overview(backend)).cluster, own, 'of its models, also what was refused')
  t.same((await reads.model(backend, 'add')).cluster, { ...whole, unready: [] })
  Object.assign(backend, { identity: { name: 'ci', mayControl: false, mayCall: () => true } })
  t.equal((await reads.overview(backend)).cluster, undefined)
  t.equal((await reads.model(backend, 'add')).cluster, undefined)
  const alone = setup()
  t.equal((await alone.reads.overview(alone.backend)).cluster, undefined, 'where no cluster is')
})

await t.test('the page gets some of many, and why they are not known', async (t) => {
  const many = setup({ cluster: clusterOf(async () => Array.from({ length: 250 }, () => UNREADY)) })
  const { cluster } = await many.reads.overview(many.backend)
  t.same([cluster?.unready.length, cluster?.leftOut], [100, 150])
  const failing = setup({ cluster: clusterOf(() => Promise.reject(new Error('forbidden'))) })
  t.match((await failing.reads.overview(failing.backend)).cluster, {
    unready: [],
    failure: 'forbidden',
  })
  const clock = createManualClock()
  const silent = setup({ clock, cluster: clusterOf(() => new Promise(() => {})) })
  const asked = silent.reads.overview(silent.backend)
  await until('it waits', () => clock.pending === 1)
  clock.advance(1500)
  const failure = 'the API server has not answered within 1500 ms'
  t.match(await asked, { models: [{}, {}, {}], cluster: { failure } })
})
