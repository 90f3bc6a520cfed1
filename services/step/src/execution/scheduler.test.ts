import { ServeError } from '@tutti/errors'
import t from 'tap'
import {
  createSchedulerRig,
  dynamicBatching,
  executedIds,
  scriptedConfig,
} from '../testing/scheduler-rig.ts'
import { SCRIPTED_TIMES } from '../testing/scripted-engine.ts'
import { batchRequest } from '../testing/step-builders.ts'

const batching = (rest = {}) =>
  scriptedConfig({ dynamic_batching: dynamicBatching({ preferred_batch_size: [4], ...rest }) })

await t.test(
  'without a batcher requests run one by one, in order, over the instances',
  async (t) => {
    const { model, submit, scheduler } = createSchedulerRig({ instances: 2 })
    const requests = ['a', 'b', 'c', 'd'].map((id) => submit(id))
    t.same(executedIds(model), ['a', 'b'])
    t.same(scheduler.load, { inFlight: 4, queued: 2, freeSlots: 0 })
    model.at(1).finish()
    await requests[1]?.done
    await model.begun(3)
    t.same(executedIds(model), ['a', 'b', 'c'])
    t.equal(model.at(2).instance, model.at(1).instance, 'the free instance takes the next one')
    for (const i of [0, 2]) model.at(i).finish()
    await model.begun(4)
    model.at(3).finish()
    await Promise.all(requests.map(({ done }) => done))
    t.same(
      requests.map(({ outcome }) => outcome),
      ['OK', 'OK', 'OK', 'OK'],
    )
    await new Promise(setImmediate)
    t.same(scheduler.load, { inFlight: 0, queued: 0, freeSlots: 2 })
  },
)

await t.test('an instance gets more to do at once as soon as its model proves short', async (t) => {
  const { model, submit, scheduler, statistics } = createSchedulerRig({ openExecutions: 3 })
  const requests = ['a', 'b', 'c', 'd', 'e'].map((id) => submit(id))
  t.same(executedIds(model), ['a'], 'nothing is known of the model yet')
  model.at(0).finish()
  await model.begun(4)
  t.same(executedIds(model), ['a', 'b', 'c', 'd'])
  t.same(scheduler.load, { inFlight: 4, queued: 1, freeSlots: 0 })
  requests[2]?.cancel()
  t.equal(
    requests[2]?.outcome,
    'CANCELLED CANCELLED',
    'answered at once, although it waits at the instance',
  )
  requests[4]?.cancel()
  for (const i of [1, 2, 3]) model.at(i).finish()
  await Promise.all(requests.map(({ done }) => done))
  t.same(
    requests.map(({ outcome }) => outcome),
    ['OK', 'OK', 'CANCELLED CANCELLED', 'OK', 'CANCELLED CANCELLED'],
  )
  t.same(executedIds(model), ['a', 'b', 'c', 'd'], 'what was cancelled in the queue never ran')
  t.equal(statistics.snapshot().executionCount, 4n)
})

await t.test('a batcher keeps what it has until an instance is free', async (t) => {
  const { model, submit } = createSchedulerRig({ config: batching(), openExecutions: 3 })
  const first = submit('a')
  model.at(0).finish()
  await first.done
  await new Promise(setImmediate)
  const rest = ['b', 'c', 'd'].map((id) => submit(id))
  t.same(executedIds(model), ['a', 'b'])
  model.at(1).finish()
  await model.begun(3)
  t.same(executedIds(model), ['a', 'b', 'cd'])
  model.at(2).finish()
  await Promise.all(rest.map(({ done }) => done))
})

await t.test('what an execution waited behind others is queue time', async (t) => {
  const { model, submit, statistics } = createSchedulerRig()
  const { done } = submit('a')
  model.at(0).finish({ ...SCRIPTED_TIMES, waitNs: 700 })
  await done
  const { queue, computeInfer } = statistics.snapshot()
  t.same([queue.ns, computeInfer.ns], [700n, BigInt(SCRIPTED_TIMES.computeInferNs)])
})

await t.test('requests that wait for an instance are batched when it is free', async (t) => {
  const { model, submit } = createSchedulerRig({ config: batching() })
  const first = submit('a')
  const rest = ['b', 'c', 'd', 'e', 'f'].map((id) => submit(id))
  model.at(0).finish()
  await first.done
  await model.begun(2)
  t.same(executedIds(model), ['a', 'bcde'])
  model.at(1).finish()
  await model.begun(3)
  t.same(executedIds(model), ['a', 'bcde', 'f'])
  model.at(2).finish()
  await Promise.all(rest.map(({ done }) => done))
})

await t.test(
  'a batch goes when it is full or its delay is over, with one timer for all',
  async (t) => {
    const { model, submit, clock } = createSchedulerRig({
      config: batching({ max_queue_delay_microseconds: 5000 }),
      instances: 3,
    })
    submit('a')
    submit('b')
    t.equal(clock.pending, 1)
    t.same(executedIds(model), [])
    submit('c')
    submit('d')
    await new Promise(setImmediate)
    t.same(executedIds(model), ['abcd'], 'full: at the end of the turn')
    clock.advance(3)
    submit('e')
    await new Promise(setImmediate)
    clock.advance(4)
    t.same(
      executedIds(model),
      ['abcd'],
      'the timer of the first batch does not cut the second short',
    )
    clock.advance(1)
    t.same(executedIds(model), ['abcd', 'e'])
    t.equal(clock.pending, 0)
  },
)

await t.test(
  'a cancelled request leaves the queue at once and is answered without a text',
  async (t) => {
    const { model, submit, scheduler, statistics } = createSchedulerRig()
    submit('a')
    const b = submit('b')
    const c = submit('c')
    t.equal(statistics.pending, 2)
    b.cancel(new ServeError('CANCELLED', 'the client went away'))
    await b.done
    t.equal(b.outcome, 'CANCELLED CANCELLED')
    t.match(b.sink.responses[0]?.error?.details, { model: 'm', version: '1', replica: 'r1' })
    t.equal(scheduler.load.queued, 1)
    t.equal(statistics.failures('CANCELED'), 1)
    t.equal(statistics.pending, 1)
    model.at(0).finish()
    await model.begun(2)
    t.same(executedIds(model), ['a', 'c'])
    model.at(1).finish()
    await c.done
  },
)

await t.test('a request that leaves a waiting batch may let the rest go', async (t) => {
  const { model, submit } = createSchedulerRig({
    config: batching({ preferred_batch_size: [2], max_queue_delay_microseconds: 9000 }),
  })
  const a = submit('a', batchRequest({ id: 'a', batch: 1, width: 3 }))
  t.same(executedIds(model), [])
  a.cancel()
  submit('b', batchRequest({ id: 'b', batch: 2 }))
  t.same(executedIds(model), ['b'])
})

await t.test(
  'a running call that is cancelled is abandoned: answered, dropped, logged; the instance stays taken',
  async (t) => {
    const { model, submit, scheduler, lines, statistics } = createSchedulerRig()
    const a = submit('a')
    const b = submit('b')
    a.cancel()
    await a.done
    t.equal(a.outcome, 'CANCELLED CANCELLED')
    t.equal(model.at(0).signal.aborted, true, 'the engine is told')
    t.same(scheduler.load, { inFlight: 1, queued: 1, freeSlots: 0 })
    model.at(0).finish()
    await model.begun(2)
    t.match(lines, [/result dropped/])
    t.equal(a.sink.responses.length, 1)
    t.equal(statistics.snapshot().success.count, 0n)
    model.at(1).finish()
    await b.done
  },
)

await t.test('the engine is told only when no caller of the batch waits any more', async (t) => {
  const { model, submit } = createSchedulerRig({ config: batching() })
  submit('a')
  const [b, c] = [submit('b'), submit('c')]
  model.at(0).finish()
  await model.begun(2)
  b.cancel()
  t.equal(model.at(1).signal.aborted, false)
  model.at(1).finish()
  await c.done
  t.equal(b.outcome, 'CANCELLED CANCELLED')
  t.equal(c.outcome, 'OK')
})

await t.test('a deadline strikes wherever the request is', async (t) => {
  const { model, submit, clock, scheduler } = createSchedulerRig()
  const late = submit('z', batchRequest({ id: 'z' }), { deadlineAt: 0 })
  const running = submit('a', batchRequest({ id: 'a' }), { deadlineAt: 5 })
  const queued = submit('b', batchRequest({ id: '' }), { deadlineAt: 3 })
  const inTime = submit('c', batchRequest({ id: 'c' }), { deadlineAt: 50 })
  t.equal(
    late.outcome,
    'DEADLINE_EXCEEDED DEADLINE_EXCEEDED [request id: z] the time of the request is over',
  )
  clock.advance(3)
  t.equal(
    queued.outcome,
    'DEADLINE_EXCEEDED DEADLINE_EXCEEDED [request id: <id_unknown>] the time of the request is over',
  )
  t.equal(running.outcome, '')
  clock.advance(2)
  t.match(running.outcome, /^DEADLINE_EXCEEDED/)
  t.equal(scheduler.load.freeSlots, 0)
  model.at(0).finish()
  await model.begun(2)
  t.same(executedIds(model), ['a', 'c'])
  model.at(1).finish()
  await inTime.done
  t.equal(clock.pending, 0, 'no timer is left behind')
})

await t.test(
  'a request whose time is over is not executed, even if its timer is late',
  async (t) => {
    const { model, submit, clock } = createSchedulerRig({
      config: batching({ max_queue_delay_microseconds: 5000 }),
    })
    // The batch delay ends at the very moment of b's deadline, and its timer was set first.
    submit('a')
    const b = submit('b', batchRequest({ id: 'b' }), { deadlineAt: 5 })
    clock.advance(5)
    t.same(executedIds(model), ['a'])
    t.match(b.outcome, /^DEADLINE_EXCEEDED/)
  },
)

await t.test('a caller that is gone before it is heard is not executed', async (t) => {
  const { model, submit } = createSchedulerRig()
  const signal = AbortSignal.abort(new ServeError('DEADLINE_EXCEEDED', 'too late'))
  t.equal(
    submit('a', batchRequest(), { signal }).outcome,
    'DEADLINE_EXCEEDED DEADLINE_EXCEEDED too late',
  )
  t.equal(
    submit('b', batchRequest(), { signal: AbortSignal.abort() }).outcome,
    'CANCELLED CANCELLED',
  )
  t.same(executedIds(model), [])
})

await t.test('queue policies answer with the texts of Triton', async (t) => {
  const policy = {
    timeout_action: 'REJECT',
    default_timeout_microseconds: 2000,
    allow_timeout_override: false,
    max_queue_size: 1,
  } as const
  const { submit, clock, statistics } = createSchedulerRig({
    config: batching({ default_queue_policy: policy }),
  })
  submit('a')
  const waiting = submit('b')
  const refused = submit('c')
  t.equal(refused.outcome, 'UNAVAILABLE QUEUE_FULL [request id: c] Exceeds maximum queue size')
  clock.advance(2)
  await waiting.done
  t.equal(waiting.outcome, 'UNAVAILABLE QUEUE_TIMEOUT Request timeout expired')
  t.equal(statistics.failures('REJECTED'), 2)
  t.equal(statistics.pending, 0)
})

await t.test('a queue without a bound is bounded by the server', async (t) => {
  for (const config of [scriptedConfig(), batching()]) {
    const { submit } = createSchedulerRig({ config, maxQueuedRequests: 1 })
    submit('a')
    submit('b')
    t.equal(
      submit('c').outcome,
      "RESOURCE_EXHAUSTED OVERLOADED [request id: c] 1 requests wait for the model, which is the server's bound",
    )
  }
})

await t.test(
  'preserve_ordering answers in order of execution, whichever is ready first',
  async (t) => {
    const { model, submit, order } = createSchedulerRig({
      config: batching({ preserve_ordering: true }),
      instances: 3,
    })
    const [a, b] = [submit('a'), submit('b')]
    await new Promise(setImmediate)
    const c = submit('c')
    await new Promise(setImmediate)
    model.at(2).finish()
    model.at(1).finish()
    await new Promise(setImmediate)
    t.same(order, [])
    b.cancel()
    await b.done
    t.same(order, ['b'], 'a caller that leaves is answered at once')
    model.at(0).finish()
    await Promise.all([a.done, c.done])
    t.same(order, ['b', 'a', 'c'])
    t.same([a.outcome, c.outcome], ['OK', 'OK'])
  },
)

await t.test('a final response carries the times and the statistics count it', async (t) => {
  const { model, submit, clock, statistics } = createSchedulerRig({ config: batching() })
  submit('x')
  const a = submit('a', batchRequest({ id: 'a', batch: 2 }))
  const b = submit('b')
  clock.advance(3)
  model.at(0).finish()
  await model.begun(2)
  clock.advance(4)
  model.at(1).finish()
  await Promise.all([a.done, b.done])
  const times = { ...SCRIPTED_TIMES, queueNs: 3_000_000, transferNs: 0 }
  t.same(a.sink.responses[0]?.times, times)
  const { success, queue, batchStats, inferenceCount, executionCount } = statistics.snapshot()
  t.same(success, { count: 3n, ns: 17_000_000n })
  t.same(queue, { count: 3n, ns: 6_000_000n })
  t.equal(inferenceCount, 4n)
  t.equal(executionCount, 2n)
  t.same(
    batchStats.map(({ batchSize }) => batchSize),
    [1n, 3n],
  )
})

await t.test('draining refuses new requests and ends with the last accepted one', async (t) => {
  const { model, submit, scheduler } = createSchedulerRig()
  const [a, b] = [submit('a'), submit('b')]
  let isDrained = false
  const drained = scheduler.drain().then(() => (isDrained = true))
  t.equal(
    submit('c').outcome,
    'UNAVAILABLE SERVER_STOPPING [request id: c] Server is stopping, scheduler for model has stopped accepting new inference requests',
  )
  model.at(0).finish()
  await model.begun(2)
  t.equal(isDrained, false)
  model.at(1).finish()
  await drained
  t.same([a.outcome, b.outcome], ['OK', 'OK'])
  await scheduler.drain()
})

await t.test('stopping answers what waits and what runs', async (t) => {
  const { model, submit, scheduler, clock } = createSchedulerRig({
    config: batching({ max_queue_delay_microseconds: 1000 }),
  })
  const running = submit('r', batchRequest({ id: 'r', batch: 4 }))
  const waiting = submit('w')
  scheduler.stop()
  await Promise.all([running.done, waiting.done])
  t.match(
    running.outcome,
    /^UNAVAILABLE ENGINE_STOPPED/,
    'it may have run, so it is not tried again',
  )
  t.match(waiting.outcome, /^UNAVAILABLE SERVER_STOPPING/)
  t.same([running.sink.executed, waiting.sink.executed], ['maybe', 'no'])
  model.at(0).finish()
  clock.advance(10)
  t.equal(model.executions.length, 1)
  t.equal(clock.pending, 0)
})

await t.test(
  'a request that ends because another was answered is answered and counted once',
  async (t) => {
    const { submit, scheduler, statistics } = createSchedulerRig({
      config: batching({ max_queue_delay_microseconds: 1000 }),
    })
    const [first, second] = [submit('a'), submit('b')]
    const fail = first.sink.fail.bind(first.sink)
    first.sink.fail = (...failure) => {
      fail(...failure)
      second.cancel()
    }
    scheduler.stop()
    await Promise.all([first.done, second.done])
    t.match(first.outcome, /SERVER_STOPPING/)
    t.match(second.outcome, /CANCELLED/)
    t.equal(second.sink.responses.length, 1)
    t.equal(statistics.snapshot().fail.count, 2n)
    t.equal(statistics.pending, 0)
  },
)

await t.test('what another request of its batch cancels is not executed', async (t) => {
  const { model, submit, clock } = createSchedulerRig({
    config: batching({ max_queue_delay_microseconds: 1000 }),
  })
  // Its batch's timer is the older one, so the batch is formed before the deadline's own timer fires.
  const sibling = submit('b')
  const late = submit('a', batchRequest(), { deadlineAt: 1 })
  const fail = late.sink.fail.bind(late.sink)
  late.sink.fail = (...failure) => {
    fail(...failure)
    sibling.cancel()
  }
  clock.advance(1)
  await Promise.all([late.done, sibling.done])
  t.match(late.outcome, /DEADLINE_EXCEEDED/)
  t.match(sibling.outcome, /CANCELLED/)
  t.equal(model.executions.length, 0)
})
