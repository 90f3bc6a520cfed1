import { ServeError } from '@tutti/errors'
import { RESPONSE_WINDOW, type StepResponse } from '@tutti/tensor'
import { responsesTo } from '@tutti/tensor/testing'
import t from 'tap'
import { createSchedulerRig, dynamicBatching, scriptedConfig } from '../testing/scheduler-rig.ts'
import { streamResponses } from '../testing/scripted-engine.ts'
import { batchRequest, floats } from '../testing/step-builders.ts'

const decoupled = scriptedConfig({ model_transaction_policy: { decoupled: true } })
const ordered = scriptedConfig({
  model_transaction_policy: { decoupled: true },
  dynamic_batching: dynamicBatching({ preferred_batch_size: [2], preserve_ordering: true }),
})
const WINDOW = RESPONSE_WINDOW.responses

/** Lets everything run that waits for a promise. */
const settle = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

/** A decoupled model with one request at it, whose reader takes what it wants. */
function open(o: { readonly deadlineAt?: number } = {}) {
  const rig = createSchedulerRig({ config: decoupled })
  const cancel = new AbortController()
  const options = { signal: cancel.signal, ...o }
  const stream = responsesTo(rig.scheduler, batchRequest({ id: 'a' }), options)
  const execution = rig.model.at(0)
  let sent = 0
  const onSent = (count: number): void => void (sent = count)
  return { ...rig, stream, cancel, execution, onSent, sent: () => sent }
}

/** Collects the responses that come, and the failure at their end. */
async function collect(stream: AsyncIterable<StepResponse>) {
  const responses: StepResponse[] = []
  try {
    for await (const one of stream) responses.push(one)
    return { responses, error: undefined }
  } catch (error) {
    return { responses, error: ServeError.from(error) }
  }
}

await t.test(
  'an engine that heeds its reader is never further ahead than the window',
  async (t) => {
    const { stream, execution, onSent, sent } = open()
    const streamed = streamResponses(execution, { count: 5000, onSent })
    let read = 0
    let ahead = 0
    for await (const response of stream) {
      if (response.index === read) read += 1
      ahead = Math.max(ahead, sent() - read)
      if (read % 100 === 0) await settle()
    }
    await streamed
    execution.end()
    t.same([read, ahead <= WINDOW], [5000, true])
  },
)

await t.test('a cancel, a deadline and the end of the step let a waiting engine go', async (t) => {
  const ends = {
    CANCELLED: (o: ReturnType<typeof open>) =>
      o.cancel.abort(new ServeError('CANCELLED', 'client went away')),
    DEADLINE_EXCEEDED: (o: ReturnType<typeof open>) => o.clock.advance(1000),
    ENGINE_STOPPED: (o: ReturnType<typeof open>) => o.scheduler.stop(),
  }
  for (const [reason, end] of Object.entries(ends)) {
    const o = open({ deadlineAt: 1000 })
    const streamed = streamResponses(o.execution, { count: 5000, onSent: o.onSent })
    await settle()
    t.equal(o.sent(), WINDOW)
    end(o)
    await streamed
    t.ok(o.execution.signal.aborted, 'the engine hears of it too')
    o.execution.end()
    const { responses, error } = await collect(o.stream)
    t.equal(responses.length, WINDOW, 'what came after the end is dropped')
    t.notOk(responses.some(({ final }) => final))
    t.equal(error?.reason, reason)
  }
})

await t.test('a drain waits for the reader of an engine that waits', async (t) => {
  const { stream, execution, scheduler } = open()
  const streamed = streamResponses(execution, { count: 40 })
  const ended = streamed.then(() => execution.end())
  let isDrained = false
  const drained = scheduler.drain().then(() => (isDrained = true))
  await settle()
  t.notOk(isDrained)
  t.equal((await collect(stream)).responses.length, 40)
  await Promise.all([ended, drained])
})

await t.test('an engine that heeds nothing loses its request, not the memory', async (t) => {
  const { stream, execution, statistics } = open()
  for (let index = 0; index < 3000; index += 1) execution.send(0, { index, final: false })
  t.ok(execution.signal.aborted)
  const { responses, error } = await collect(stream)
  t.equal(responses.length, WINDOW + 1024)
  t.match(error, { reason: 'OVERLOADED', details: { model: 'm' } })
  execution.end()
  t.equal(statistics.snapshot().fail.count, 1n)
})

await t.test('large responses to a reader that is not ready count by their bytes', async (t) => {
  const { stream, execution } = open()
  const outputs = [floats('y', [1, 16 * 1024 * 1024])]
  // The same memory each time: what counts is what the reader would have to hold.
  for (let index = 0; index < 7; index += 1) execution.send(0, { index, final: false, outputs })
  t.match(await collect(stream), { error: { reason: 'OVERLOADED' } })
})

await t.test('with preserve_ordering a request is let on by its turn, or by its end', async (t) => {
  for (const isCancelled of [false, true]) {
    const { scheduler, model } = createSchedulerRig({ config: ordered, instances: 2 })
    const cancel = new AbortController()
    const [first, stream] = [new AbortController(), cancel].map(({ signal }, i) =>
      responsesTo(scheduler, batchRequest({ id: String(i) }), { signal }),
    )
    if (first === undefined || stream === undefined) throw new Error('there are two')
    let sent = 0
    await model.begun(2)
    const second = model.at(1)
    const streamed = streamResponses(second, { count: 40, onSent: (count) => (sent = count) })
    const ended = streamed.then(() => second.end())
    await settle()
    t.equal(sent, WINDOW, 'as many as wait for their turn')
    if (isCancelled) cancel.abort()
    else model.at(0).finish()
    const { responses, error } = await collect(stream)
    await ended
    t.same([responses.length, error?.reason], isCancelled ? [0, 'CANCELLED'] : [40, undefined])
    if (isCancelled) model.at(0).finish()
    t.match(await collect(first), { responses: [{ final: true }], error: undefined })
  }
})
