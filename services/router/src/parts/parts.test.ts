import { passiveTracing, systemClock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { PART_HOST, toPartText } from '@tutti/graph'
import { StepSpans } from '@tutti/telemetry'
import type { Executor, FindExecutor, ModelTarget, ResponseSink } from '@tutti/tensor'
import { requestContext, responsesTo } from '@tutti/tensor/testing'
import t from 'tap'
import { PartRunner } from '../requests/part-runner.ts'
import { ReplicaExecutors } from '../testing/replica-executors.ts'
import {
  chain,
  collect,
  failure,
  floats,
  oneToOne,
  quiet,
  request,
  toFloats,
} from '../testing/requests.ts'
import { testRouter, toConfig } from '../testing/test-router.ts'

const TIMES = { queueNs: 1e6, computeInputNs: 0, computeInferNs: 2e6, computeOutputNs: 0 }
const RETRY = { maxRetries: 2, retryOn: ['UNAVAILABLE'], backoffMs: 1 } as const
const TWICE = { call: { mayRunTwice: true, retry: RETRY } }

type Fail = Parameters<ResponseSink['fail']>
type PartExecute = Executor['execute']

interface RigOptions extends Omit<Parameters<typeof testRouter>[0], 'replicas'> {
  /** Models by replica. */
  readonly replicas?: Readonly<Record<string, readonly string[]>>
  /** Configurations by model. */
  readonly configs?: Readonly<Record<string, string>>
  readonly maxBytes?: number
}

/** A router over replicas that run parts of graphs; their models add one. */
function createRig(o: RigOptions = {}) {
  const { replicas: served = { r: ['a', 'b'] }, configs = {}, maxBytes = 1000, ...rest } = o
  const calls: string[] = []
  const fails = new Map<string, Fail>()
  const runners = new Map<string, PartRunner>()
  const replicas = new ReplicaExecutors()
  const opened = testRouter({ ensembles: { e: chain('a', 'b') }, ...rest, replicas })
  const { router, directory } = opened
  const configOf = ({ model, revision }: ModelTarget) => {
    if (revision !== 'v1') throw new ServeError('REVISION_GONE', `${model} has gone`)
    return toConfig(model, configs[model] ?? oneToOne)
  }
  for (const [replica, models] of Object.entries(served)) {
    const executor: FindExecutor = ({ model }) => ({
      execute: ({ inputs }, sink) => {
        calls.push(`${replica} ${model}`)
        const failed = fails.get(model)
        if (failed !== undefined) return sink.fail(...failed)
        const sum = toFloats(inputs[0]?.data).map((value) => value + 1)
        const outputs = [floats('Y', [...sum])]
        const times = { ...TIMES, transferNs: 0 }
        sink.send({ index: 0, final: true, outputs, parameters: new Map(), times })
      },
    })
    const tracing = passiveTracing
    const clock = systemClock
    const runner = new PartRunner({ replica, executor, configOf, maxBytes, clock, tracing })
    runners.set(replica, runner)
    replicas.set(replica, (target) =>
      target.model === PART_HOST.model
        ? {
            execute: (asked, sink, options) => {
              calls.push(`${replica} part`)
              const failed = fails.get('part')
              if (failed !== undefined) return sink.fail(...failed)
              runner.execute(asked.program ?? '', asked, sink, options)
            },
          }
        : executor(target),
    )
    const versions = [{ version: 1, revision: 'v1', state: 'READY' as const, reason: '' }]
    const described = models.map((name) => {
      const config = toConfig(name, configs[name] ?? oneToOne)
      return { name, config, labels: {}, versions, reason: '' }
    })
    router.view.describe({ replica, models: described }, { statistics: async () => [] })
    const targets = models.map((model) => ({ model, version: 1, revision: 'v1' }))
    directory.announce({ replica }, [...targets, PART_HOST])
  }
  const ask = async (ensemble = 'e', more: Parameters<typeof request>[2] = {}) => {
    const [response] = await collect(
      responsesTo(router.resolve(ensemble, ''), request('IN', [1], more), quiet),
    )
    return toFloats(response?.outputs[0]?.data)
  }
  return { ...opened, calls, fails, runners, ask }
}

await t.test('steps with one replica are one request, counted as if apart', async (t) => {
  const counted: string[] = []
  for (const runsParts of [true, false]) {
    const { router, metrics, directory, calls, ask } = createRig()
    const apart = ['a', 'b'].map((model) => ({ model, version: 1, revision: 'v1' }))
    if (!runsParts) directory.announce({ replica: 'r' }, apart)
    router.replicaTotals()
    t.same(await ask(), [3])
    t.same(calls, runsParts ? ['r part', 'r a', 'r b'] : ['r a', 'r b'])
    const text = await metrics.render()
    const lines = text
      .split('\n')
      .filter((line) => /^tutti_step_(queue|compute)_seconds_(count|sum)/.test(line))
    const totals = router.replicaTotals().map((one) => ({ ...one, transferMs: 0 }))
    counted.push(JSON.stringify([lines, totals]))
    t.same(directory.find('r')?.inFlight, 0)
  }
  t.match(counted[0], 'tutti_step_compute_seconds_count')
  t.match(counted[0], '"step":"b"')
  t.equal(counted[0], counted[1])
})

await t.test('a part that is not executed, or may run twice, is called step by step', async (t) => {
  const lost = new ServeError('STEP_LOST', 'replica r is lost', {
    details: { step: 'a, b', model: '/parts' },
  })
  const refused = new ServeError('REVISION_GONE', 'it is gone', { details: { step: 'a, b' } })
  const cases = [
    { failed: [refused, 'no'], steps: [], ends: 'answered' },
    { failed: [lost, 'maybe'], steps: [TWICE, TWICE], ends: 'answered' },
    { failed: [lost, 'maybe'], steps: [TWICE], ends: 'STEP_LOST' },
    { failed: [lost, 'maybe'], steps: [], ends: 'STEP_LOST' },
  ] as const
  for (const { failed, steps, ends } of cases) {
    const { fails, calls, ask, directory } = createRig({ beyond: { e: { steps } } })
    fails.set('part', [...failed])
    if (ends === 'answered') {
      t.same(await ask(), [3])
      t.same(calls, ['r part', 'r a', 'r b'])
    } else {
      const error = await failure(ask())
      t.equal(error.reason, ends)
      t.equal(error.message, "in ensemble 'e', step 'a, b': replica r is lost")
      t.match(error.details, { ensemble: 'e', step: 'a, b', replica: 'r' })
      t.same(calls, ['r part'])
    }
    t.equal(directory.find('r')?.inFlight, 0)
  }
})

await t.test('a failure within is that of the step', async (t) => {
  const { fails, calls, ask, metrics } = createRig()
  fails.set('b', [new ServeError('ENGINE_FAILED', 'broken'), 'maybe', { ...TIMES, transferNs: 0 }])
  const error = await failure(ask())
  t.equal(error.message, "in ensemble 'e', broken")
  t.match(error.details, { ensemble: 'e', step: 'b', model: 'b', replica: 'r', attempt: '1' })
  t.same(calls, ['r part', 'r a', 'r b'])
  const text = await metrics.render()
  t.match(text, 'tutti_step_compute_seconds_count{ensemble="e",step="a",model="a"} 1')
})

await t.test('only what one replica has is together', async (t) => {
  const spread = createRig({ replicas: { r: ['a'], s: ['b'] } })
  t.same(await spread.ask(), [3])
  t.same(spread.calls, ['r a', 's b'])
  const mixed = createRig({
    replicas: { r: ['a', 'b', 'c'], s: ['d'] },
    ensembles: { e: chain('a', 'b', 'd', 'c', 'a') },
  })
  t.same(await mixed.ask(), [6])
  t.same(mixed.calls, ['r part', 'r a', 'r b', 's d', 'r part', 'r c', 'r a'])
  const uneven = createRig({ replicas: { r: ['a', 'b'], s: ['b'] } })
  for (let i = 0; i < 4; i += 1) t.same(await uneven.ask(), [3])
  t.same(new Set(uneven.calls), new Set(['r a', 'r b', 's b']), 'who has one alone gets its share')
  const long = createRig({ ensembles: { e: chain(...Array<string>(257).fill('a')) } })
  t.same(await long.ask(), [258])
  t.equal(long.calls.length, 257, 'nobody looks for parts of so many steps')
  const sequence = `${oneToOne} sequence_batching {}`
  const stateful = createRig({
    replicas: { r: ['a', 'b', 'c'] },
    configs: { c: sequence },
    ensembles: { e: chain('a', 'b', 'c') },
  })
  const context = requestContext({ correlationId: 7n, sequenceStart: true })
  t.same(await stateful.ask('e', { context }), [4])
  t.same(stateful.calls, ['r part', 'r a', 'r b', 'r c'], 'a sequence has its own replica')
  const hedged = createRig({
    beyond: {
      e: { steps: [{ call: { mayRunTwice: true, hedge: { afterMs: 1000, maxPercent: 100 } } }] },
    },
  })
  t.same(await hedged.ask(), [3])
  t.same(hedged.calls, ['r a', 'r b'])
})

await t.test('replicas come and go, and parts with them', async (t) => {
  const { directory, ask, calls } = createRig({ replicas: { r: ['a', 'b'], s: [] } })
  await ask()
  directory.suspect('r', true)
  directory.announce({ replica: 's' }, [
    { model: 'a', version: 1, revision: 'v1' },
    { model: 'b', version: 1, revision: 'v1' },
    PART_HOST,
  ])
  await ask()
  directory.suspect('r', false)
  directory.drain('s')
  await ask()
  t.same(calls, ['r part', 'r a', 'r b', 's part', 's a', 's b', 'r part', 'r a', 'r b'])
})

await t.test('who observes steps sees each called by itself', async (t) => {
  const { router, calls } = createRig()
  const spans = new StepSpans(systemClock)
  const model = router.resolve('e', '')
  await collect(responsesTo(model, request('IN', [1]), { ...quiet, observer: spans }))
  t.same(calls, ['r a', 'r b'])
})

await t.test('a runner refuses what it cannot run, and has executed nothing', async (t) => {
  const { runners, calls } = createRig()
  const runner = runners.get('r')
  const run = (program: string) => {
    const execute: PartExecute = (asked, sink, o) => runner?.execute(program, asked, sink, o)
    return failure(responsesTo({ execute }, request('#0'), quiet))
  }
  for (const text of ['', '{', '{}', '[1]', 'null', '{"ensemble":"e"}']) {
    t.match(await run(text), { reason: 'MALFORMED_MESSAGE' }, text)
  }
  const graph = { steps: [], outputs: [], maxInFlightPerStep: 0 }
  const part = { ensemble: 'e', inputs: [], outputs: [], graph }
  const pins = [{ model: 'a', version: 1, revision: 'other' }]
  t.match(await run(toPartText({ ...part, pins })), { reason: 'REVISION_GONE' })
  const step = { name: 'a', model: 'a', version: 1, inputs: [], outputs: [], after: [] }
  const odd = { ...graph, steps: [{ ...step, outputs: [{ name: 'Z', tensor: 'z' }] }] }
  const known = [{ model: 'a', version: 1, revision: 'v1' }]
  t.match(await run(toPartText({ ...part, pins: known, graph: odd })), {
    reason: 'MODEL_NOT_READY',
    message: /^a part of ensemble 'e' does not fit its models here: /,
  })
  t.same(calls, [])
})

await t.test('tensors between the steps of all parts have a bound', async (t) => {
  const { ask, calls } = createRig({ maxBytes: 3 })
  const error = await failure(ask())
  t.equal(error.reason, 'OVERLOADED')
  t.match(error.message, 'step is overloaded: 0 bytes are held between steps, 4 more would exceed')
  t.same(calls, ['r part', 'r a'])
  const enough = createRig({ maxBytes: 8 })
  for (let i = 0; i < 5; i += 1) t.same(await enough.ask(), [3], 'all is given back')
})

await t.test('a runner that drains takes nothing new, which runs step by step', async (t) => {
  const { runners, ask, calls } = createRig()
  await runners.get('r')?.drain()
  t.same(await ask(), [3])
  t.same(calls, ['r part', 'r a', 'r b'])
})
