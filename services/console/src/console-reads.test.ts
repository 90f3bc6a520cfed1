import { systemClock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { parseModelConfig } from '@tutti/model-config'
import { StatisticsRecorder } from '@tutti/server'
import { ScriptedBackend } from '@tutti/server/testing'
import t from 'tap'
import { ConsoleReads } from './console-reads.ts'

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

/** What a caller reads who sees all models but `hidden`. */
function setup(o: { readonly failure?: ServeError } = {}) {
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
      statisticsOf: async (names) => {
        asked.push([...names])
        if (o.failure !== undefined) throw o.failure
        return [...names].map((name) => {
          const recorder = new StatisticsRecorder({ name, version: '1', clock: systemClock })
          recorder.recordFailure({ requestNs: 1, reason: 'OTHER' })
          return recorder.snapshot()
        })
      },
    },
    server: { name: 's', version: '1', scope: 'a test' },
    mayInfer: false,
    http: undefined,
    clock: systemClock,
  })
  return { reads, backend, asked }
}

await t.test('the list asks for the counts of its models at once', async (t) => {
  const { reads, backend, asked } = setup()
  const { models, countsFailure } = await reads.overview(backend)
  t.same(asked, [['add', 'other', 'ens']])
  t.equal(countsFailure, '')
  const failures = models.map(({ counts }) => counts?.failures)
  t.same(failures, [1, 1, 0.5], 'an ensemble counts a failure twice')
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
