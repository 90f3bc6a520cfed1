// needs: nats
import { createLogger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { EMPTY_CONTEXT, type StepResponse } from '@tutti/tensor'
import { type RecordedResponse, RecordedResponses } from '@tutti/tensor/testing'
import t from 'tap'
import {
  answer,
  collect,
  echo,
  envelope,
  failureOf,
  openBroker,
  openTestRouter,
  openTestStep,
  REVISION,
  ref,
  SERVED,
  sendTo,
  tensorBytes,
  until,
  WITH_NATS,
} from '../testing/endpoints.ts'
import type { TestHandler } from '../testing/envelopes.ts'

const quiet = { signal: new AbortController().signal }
const STEP = { replica: 'step' }
const same = (want: Uint8Array, got: StepResponse | undefined): boolean =>
  Buffer.from(want).equals(got?.outputs[0]?.data ?? new Uint8Array())

const fails: TestHandler = async (_envelope, _tensors, sink) => {
  sink.send({
    index: 0,
    final: true,
    outputs: [],
    parameters: new Map(),
    error: new ServeError('QUEUE_FULL', 'Exceeds maximum queue size', {
      details: { model: 'm' },
    }),
    times: {
      queueNs: 1,
      computeInputNs: 2,
      computeInferNs: 3,
      computeOutputNs: 4,
      transferNs: 5,
    },
  })
}
const throws: TestHandler = async () => {
  throw new Error('broken')
}

await t.test(
  'responses come in order, and a slow reader bounds what is held',
  WITH_NATS,
  async (t) => {
    const broker = await openBroker(t)
    const router = await openTestRouter(t, broker, 'router', { settings: { responseCredits: 2 } })
    const size = 100_000
    const count = 12
    await openTestStep(t, broker, 'step', async (_envelope, _tensors, sink) => {
      for (let i = 0; i < count; i++) {
        sink.send(answer(tensorBytes(size, i), { index: i, final: i + 1 === count }))
      }
    })
    await until(() => router.directory.isServed(SERVED))
    let index = 0
    for await (const response of sendTo(router, STEP, envelope(0), [ref(tensorBytes(0))], quiet)) {
      t.equal(response.index, index)
      t.ok(same(tensorBytes(size, index), response))
      index += 1
    }
    t.equal(index, count)
  },
)

await t.test(
  'a reader too slow for the held bound gets OVERLOADED, not endless memory',
  WITH_NATS,
  async (t) => {
    const broker = await openBroker(t)
    const router = await openTestRouter(t, broker, 'router', { settings: { responseCredits: 1 } })
    let reason: unknown
    const settings = { heldResponses: 3 }
    const handle: TestHandler = async (_envelope, _tensors, sink, { signal }) => {
      signal.addEventListener('abort', () => (reason = signal.reason))
      for (let i = 0; i < 10; i++) sink.send(answer(tensorBytes(8, i), { index: i, final: false }))
      throw signal.reason
    }
    await openTestStep(t, broker, 'step', handle, { settings })
    await until(() => router.directory.isServed(SERVED))
    const responses = collect(sendTo(router, STEP, envelope(0), [ref(tensorBytes(0))], quiet))
    t.match(await failureOf(responses), { reason: 'OVERLOADED' })
    t.match(reason, { reason: 'OVERLOADED' })
  },
)

await t.test(
  'what a step answers as an error arrives with code, text and place',
  WITH_NATS,
  async (t) => {
    const broker = await openBroker(t)
    const router = await openTestRouter(t, broker, 'router')
    await openTestStep(t, broker, 'fails', fails)
    await openTestStep(t, broker, 'throws', throws)
    await until(() => router.changed.length === 2)
    const call = async (replica: string): Promise<RecordedResponse | undefined> => {
      const sink = new RecordedResponses()
      const request = { context: EMPTY_CONTEXT, requestedOutputs: [], inputs: [] }
      router.member.executor(SERVED, replica).execute(request, sink, quiet)
      return (await sink.all)[0]
    }
    t.match(await call('fails'), {
      error: { code: 'UNAVAILABLE', reason: 'QUEUE_FULL', message: 'Exceeds maximum queue size' },
      times: { queueNs: 1, computeInputNs: 2, computeInferNs: 3, computeOutputNs: 4 },
    })
    t.match(await call('throws'), { error: { reason: 'INTERNAL', message: 'broken' } })
  },
)

await t.test('the time of a call is over at the step too', WITH_NATS, async (t) => {
  const broker = await openBroker(t)
  const router = await openTestRouter(t, broker, 'router')
  const { promise: over, resolve: overWith } = Promise.withResolvers<unknown>()
  let remainingMs: number | undefined
  await openTestStep(t, broker, 'step', (offered, _tensors, _sink, { signal }) => {
    remainingMs = offered.remainingMs
    signal.addEventListener('abort', () => overWith(signal.reason))
    return new Promise(() => {})
  })
  await until(() => router.directory.isServed(SERVED))
  const cancel = new AbortController()
  const answered = collect(
    sendTo(router, STEP, envelope(0, { remainingMs: 300 }), [ref(tensorBytes(0))], cancel),
  )
  t.match(await over, { reason: 'DEADLINE_EXCEEDED' })
  t.ok(remainingMs !== undefined && remainingMs <= 300 && remainingMs > 0, `${remainingMs} ms`)
  cancel.abort(new ServeError('DEADLINE_EXCEEDED', 'over'))
  t.match(await failureOf(answered), { reason: 'DEADLINE_EXCEEDED' })
  t.match(
    await failureOf(
      collect(sendTo(router, STEP, envelope(0, { remainingMs: 0 }), [ref(tensorBytes(0))], quiet)),
    ),
    { reason: 'DEADLINE_EXCEEDED' },
    'and what comes too late never begins',
  )
})

await t.test(
  'a step without a free slot refuses, and takes work when one is free',
  WITH_NATS,
  async (t) => {
    const broker = await openBroker(t)
    const router = await openTestRouter(t, broker, 'router')
    const ends: (() => void)[] = []
    const held: TestHandler = async (_envelope, _tensors, sink) => {
      await new Promise<void>((resolve) => ends.push(resolve))
      sink.send(answer(tensorBytes(1)))
    }
    await openTestStep(t, broker, 'step', held, { settings: { maxCalls: 2 } })
    await until(() => router.directory.isServed(SERVED))
    const call = (): Promise<StepResponse[]> =>
      collect(sendTo(router, STEP, envelope(0), [ref(tensorBytes(0))], quiet))
    const taken = [call(), call()]
    await until(() => ends.length === 2)
    t.match(await failureOf(call()), {
      reason: 'OVERLOADED',
      code: 'RESOURCE_EXHAUSTED',
      details: { replica: 'step' },
    })
    for (const end of ends.splice(0)) end()
    await Promise.all(taken)
    const next = call()
    await until(() => ends.length === 1)
    ends[0]?.()
    t.equal((await next).length, 1)
  },
)

await t.test(
  'drain: announced, nothing new, all that was accepted is answered',
  WITH_NATS,
  async (t) => {
    const broker = await openBroker(t)
    const router = await openTestRouter(t, broker, 'router')
    const ends: (() => void)[] = []
    const size = 2_000_000
    const step = await openTestStep(t, broker, 'step', async (_envelope, _tensors, sink) => {
      await new Promise<void>((resolve) => ends.push(resolve))
      sink.send(answer(tensorBytes(size)))
    })
    await until(() => router.directory.isServed(SERVED))
    const call = (): Promise<StepResponse[]> =>
      collect(sendTo(router, STEP, envelope(0), [ref(tensorBytes(0))], quiet))
    const accepted = call()
    await until(() => ends.length === 1)
    let isDrained = false
    const drained = step.drain(quiet).then(() => (isDrained = true))
    await until(() => !router.directory.isServed(SERVED))
    t.match(await failureOf(call()), { reason: 'SERVER_STOPPING' })
    t.notOk(isDrained, 'it waits for what it accepted')
    ends[0]?.()
    const [got] = await accepted
    t.ok(same(tensorBytes(size), got))
    await drained
    await step.close()
    await until(() => router.gone.length === 1)
    t.same(router.gone, ['step'], 'and it says farewell')
  },
)

await t.test('a step that serves something else says so at once', WITH_NATS, async (t) => {
  const broker = await openBroker(t)
  const router = await openTestRouter(t, broker, 'router')
  let revisions: (readonly [string, number, string])[] = [REVISION]
  let failed = ''
  let changed: (() => void) | undefined
  await openTestStep(t, broker, 'step', echo, {
    describe: () => ({ revisions, failed }),
    revisions: () => revisions,
    onChange: (listener) => {
      changed = listener
      return () => {}
    },
    settings: { heartbeatMs: 60_000, deadAfterMs: 600_000 },
  })
  await until(() => router.directory.isServed(SERVED))
  revisions = [['m', 2, 'bbb']]
  changed?.()
  await until(() => router.directory.isServed({ model: 'm', version: 2, revision: 'bbb' }))
  t.notOk(router.directory.isServed(SERVED))
  t.same(router.changed, ['step', 'step'])
  failed = 'other'
  changed?.()
  await until(() => router.changed.length === 3)
  t.pass('also if only its description is another: a model that failed, say')
})

await t.test('what no heartbeat can hold is an obstacle until it fits', WITH_NATS, async (t) => {
  const broker = await openBroker(t, { config: 'max_payload: 2048' })
  let count = 1
  const listeners = new Set<() => void>()
  const serve = (versions: number): void => {
    count = versions
    for (const changed of listeners) changed()
  }
  const lines: string[] = []
  const destination = { write: (line: string) => lines.push(line) }
  const log = createLogger({ level: 'info', name: 'test', destination })
  const step = await openTestStep(t, broker, 'step', echo, {
    describe: () => ({ count }),
    revisions: () => Array.from({ length: count }, (_, i) => ['m', i + 1, 'aaa'] as const),
    onChange: (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    log,
  })
  const router = await openTestRouter(t, broker, 'router')
  await until(() => router.directory.isServed(SERVED))
  t.same(step.obstacles, [])
  serve(1000)
  await until(() => step.obstacles.length > 0)
  const wanted =
    /^heartbeat of 1000 model versions: it has \d+ bytes, the broker takes at most 2048: raise max_payload/
  t.match(step.obstacles, [wanted])
  const failures = lines.map((line) => JSON.parse(line)).filter(({ level }) => level === 'error')
  t.match(failures, [{ reason: 'MESSAGE_TOO_LARGE', error: wanted }])
  t.equal(failures.length, 1)
  t.ok(router.directory.isServed(SERVED), 'what was announced is served still')
  serve(2)
  await until(() => step.obstacles.length === 0)
  await until(() => router.directory.isServed({ ...SERVED, version: 2 }))
})
