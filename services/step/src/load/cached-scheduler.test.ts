import { writeFileSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { systemClock } from '@tutti/chassis'
import { LocalCache, type ResponseCache } from '@tutti/response-cache'
import { SharedCache } from '@tutti/response-cache/testing'
import type { InferRequest } from '@tutti/tensor'
import { Lender } from '@tutti/tensor/testing'
import t, { type Test } from 'tap'
import { openTestStep } from '../testing/open-test-step.ts'
import { ScriptedEngine } from '../testing/scripted-engine.ts'
import { floats, RecordingSink, requestContext } from '../testing/step-builders.ts'

const MODEL = `backend: "scripted" max_batch_size: 4
input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ -1 ] }`

/** A step with a cache and one model, whose executions a test counts and steers. */
async function open(
  t: Test,
  config: string,
  o: { readonly isImmediate?: boolean; readonly cache?: ResponseCache } = {},
) {
  const {
    isImmediate = true,
    cache = new LocalCache({ maxBytes: 1_000_000, clock: systemClock }),
  } = o
  const directory = t.testdir({ m: { 'config.pbtxt': config, 1: { 'model.bin': 'a' } } })
  const engine = new ScriptedEngine()
  engine.isImmediate = isImmediate
  const step = await openTestStep([directory], { engines: [engine], cache })
  t.teardown(() => step.close())
  const send = async (o: Partial<InferRequest> = {}) => {
    const [served] = (await step.control.describe()).models
    const { revision = '' } = served?.versions[0] ?? {}
    const request = { context: requestContext(), inputs: [floats('x', [1, 4])], ...o }
    const sink = new RecordingSink()
    const { signal } = new AbortController()
    const executor = step.executor({ model: 'm', version: 1, revision })
    executor.execute({ requestedOutputs: [], ...request }, sink, { signal })
    return sink
  }
  const infer = async (o: Partial<InferRequest> = {}) => (await send(o)).all
  const statistics = async () => {
    const [one] = await step.control.statistics('m', '')
    const sums = [one?.cacheHit, one?.cacheMiss, one?.success].map((sum) => sum?.count)
    return [...sums, one?.executionCount].map(Number)
  }
  return { step, engine, directory, send, infer, statistics }
}

const CACHED = `${MODEL} response_cache { enable: true }`

await t.test('a model answers from the cache, and its reload does not', async (t) => {
  const { step, engine, directory, infer, statistics } = await open(t, CACHED)
  const [first] = await infer()
  const [second] = await infer()
  t.same(second?.outputs, first?.outputs)
  await infer({ inputs: [floats('x', [2, 4])] })
  t.equal(engine.model('m/1').executions.length, 2)
  t.same(await statistics(), [1, 2, 3, 2])
  writeFileSync(`${directory}/m/1/model.bin`, 'b')
  await step.models.load('m')
  await infer()
  t.same(await statistics(), [0, 1, 1, 1], 'another revision')
  step.models.unload('m')
  await step.models.load('m')
  await infer()
  t.same(await statistics(), [0, 1, 1, 1], 'the same files, loaded again')
})

await t.test('without response_cache every request is executed', async (t) => {
  const { infer, statistics } = await open(t, MODEL)
  await infer()
  await infer()
  t.same(await statistics(), [0, 0, 2, 2])
})

await t.test('what is kept outlives what an engine lent', async (t) => {
  const { engine, send, infer } = await open(t, CACHED, { isImmediate: false })
  const lender = new Lender()
  const sink = await send()
  const { tensors, retain, end } = lender.lend([
    { ...floats('y', [1, 2]), data: Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8) },
  ])
  engine.model('m/1').at(0).send(0, { outputs: tensors, retain })
  end()
  engine.model('m/1').at(0).end()
  await sink.all
  t.equal(lender.open, 0)
  const [hit] = await infer()
  t.same(hit?.outputs[0]?.data, Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8))
})

await t.test('with preserve_ordering a hit does not overtake what is executed', async (t) => {
  const config = `${CACHED} dynamic_batching { preserve_ordering: true }`
  const { engine, send, statistics } = await open(t, config, { isImmediate: false })
  const model = engine.model('m/1')
  const first = await send()
  model.at(0).finish()
  await first.all
  t.equal((await send()).outcome, 'OK', 'nothing is executed: the cache answers')
  const other = await send({ inputs: [floats('x', [2, 4])] })
  const known = await send()
  t.equal(known.outcome, '')
  model.at(1).finish()
  await other.all
  model.at(2).finish()
  await known.all
  t.same((await statistics())[0], 1)
})

await t.test('what processes share is for the same files, and for no others', async (t) => {
  const cache = new SharedCache()
  const one = await open(t, CACHED, { cache })
  const other = await open(t, CACHED, { cache })
  await one.infer()
  await other.infer()
  t.same(await other.statistics(), [1, 0, 1, 0], 'another process')
  writeFileSync(`${other.directory}/m/1/model.bin`, 'b')
  await other.step.models.load('m')
  await other.infer()
  t.same(await other.statistics(), [0, 1, 1, 1], 'other files')
  writeFileSync(`${other.directory}/m/1/model.bin`, 'a')
  await other.step.models.load('m')
  await other.infer()
  t.same(await other.statistics(), [1, 0, 1, 0], 'the first ones, loaded again')
  const another = await open(t, CACHED.replace('max_batch_size: 4', 'max_batch_size: 2'), {
    cache,
  })
  await another.infer()
  t.same(await another.statistics(), [0, 1, 1, 1], 'another configuration')
  const ordered = await open(t, `${CACHED} dynamic_batching { preserve_ordering: true }`, {
    cache,
  })
  for (let i = 0; i < 2; i += 1) await ordered.infer()
  t.same(await ordered.statistics(), [0, 0, 2, 2], 'an answer from elsewhere might be overtaken')
})

await t.test('a version that is unloaded executes what waits for the cache', async (t) => {
  const cache = new SharedCache()
  const { step, send } = await open(t, CACHED, { cache })
  const held = Promise.withResolvers<void>()
  cache.held = held.promise
  const waiting = await send()
  step.models.unload('m')
  await setImmediate()
  held.resolve()
  await waiting.all
  t.equal(waiting.outcome, 'OK')
})
