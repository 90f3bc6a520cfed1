// needs: nats
import { startFaultProxy, startNatsServer } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import { RESPONSE_WINDOW, type StepResponse } from '@tutti/tensor'
import t from 'tap'
import { ENDPOINT_DEFAULTS } from '../endpoint-settings.ts'
import {
  answer,
  brokerAt,
  collect,
  echo,
  envelope,
  failureOf,
  openTestRouter,
  openTestStep,
  ref,
  SERVED,
  sendTo,
  sendToRouter,
  type Teardown,
  tensorBytes,
  until,
  WITH_NATS,
} from '../testing/endpoints.ts'
import { executing, type TestHandler } from '../testing/envelopes.ts'

const quiet = { signal: new AbortController().signal }
const same = (want: Uint8Array, got: StepResponse | undefined): boolean =>
  Buffer.from(want).equals(got?.outputs[0]?.data ?? new Uint8Array())

async function openServer(t: Teardown) {
  const server = await startNatsServer()
  t.teardown(() => server.stop())
  return { server, broker: brokerAt(server.url) }
}

/** Answers when it is told to, and says when it has begun. */
function held(): { readonly handle: TestHandler; readonly ends: (() => void)[] } {
  const ends: (() => void)[] = []
  return {
    ends,
    handle: async (_envelope, _tensors, sink, { signal }) => {
      await new Promise<void>((resolve) => {
        ends.push(resolve)
        signal.addEventListener('abort', resolve)
      })
      sink.send(answer(tensorBytes(1)))
    },
  }
}

await t.test('a step calls a router, and hears what it answers', WITH_NATS, async (t) => {
  const { broker } = await openServer(t)
  const step = await openTestStep(t, broker, 'step', echo)
  const nested = envelope(0, { version: 0, revision: '', callers: ['a', 'b'], isDecoupled: true })
  const call = (size: number): Promise<StepResponse[]> =>
    collect(
      sendToRouter(
        step,
        { ...nested, inputs: [{ name: 'x', datatype: 'UINT8', shape: [size] }] },
        [ref(tensorBytes(size))],
        quiet,
      ),
    )
  t.match(await failureOf(call(1)), {
    reason: 'STEP_UNAVAILABLE',
    code: 'UNAVAILABLE',
    message: 'no router of the repository is there',
  })
  t.match(await failureOf(step.routers.ask('ready', {}, quiet)), { reason: 'STEP_UNAVAILABLE' })
  const envelopes: unknown[] = []
  const router = await openTestRouter(t, broker, 'router', {
    executor: executing((offered, ...rest) => {
      envelopes.push(offered)
      return echo(offered, ...rest)
    }),
  })
  await until(() => router.changed.length > 0)
  await until(() => router.member.isConnected)
  for (const size of [0, 10, 70_000, 3_000_000]) {
    const got = await retried(() => call(size))
    t.ok(same(tensorBytes(size), got[0]), `${size} bytes`)
  }
  t.match(envelopes[0], { version: 0, revision: '', callers: ['a', 'b'], isDecoupled: true })
})

/** The step may hear of the router a moment later than we do. */
async function retried<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call()
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
}

await t.test(
  'calls in both directions between the same two do not disturb one another',
  { ...WITH_NATS, timeout: 120_000 },
  async (t) => {
    const { broker } = await openServer(t)
    // The model calls back what it got, larger, before it answers: the same numbers of calls and transfers on both sides.
    let step: Awaited<ReturnType<typeof openTestStep>> | undefined
    const handle: TestHandler = async (offered, tensors, sink) => {
      const input = tensors[0]?.bytes ?? new Uint8Array()
      const inner = {
        ...offered,
        inputs: [{ name: 'x', datatype: 'UINT8' as const, shape: [input.byteLength] }],
      }
      const [got] = await retried(() =>
        collect(step === undefined ? none() : sendToRouter(step, inner, tensors, quiet)),
      )
      sink.send(answer(got?.outputs[0]?.data ?? new Uint8Array()))
    }
    step = await openTestStep(t, broker, 'step', handle)
    const router = await openTestRouter(t, broker, 'router', { executor: executing(echo) })
    await until(() => router.directory.isServed(SERVED))
    const sizes = Array.from({ length: 40 }, (_, i) => [0, 5, 66_000, 1_500_000][i % 4] ?? 0)
    const wholes = await Promise.all(
      sizes.map(async (size, i) => {
        const bytes = tensorBytes(size, i)
        const call = sendTo(router, { replica: 'step' }, envelope(size), [ref(bytes)], quiet)
        return same(bytes, (await collect(call))[0])
      }),
    )
    t.same(new Set(wholes), new Set([true]))
  },
)

async function* none(): AsyncGenerator<StepResponse> {}

await t.test('the router with the least in flight is chosen', WITH_NATS, async (t) => {
  const { broker } = await openServer(t)
  const step = await openTestStep(t, broker, 'step', echo)
  const { handle, ends } = held()
  const served: string[] = []
  for (const name of ['a', 'b']) {
    const router = await openTestRouter(t, broker, name, {
      executor: executing((...args) => {
        served.push(name)
        return handle(...args)
      }),
    })
    await until(() => router.changed.length > 0)
  }
  const names = new Set<unknown>()
  while (names.size < 2) {
    const said = await retried(() => step.routers.ask('ready', {}, quiet))
    names.add(Reflect.get(Object(said), 'member'))
  }
  const call = (): Promise<StepResponse[]> =>
    collect(sendToRouter(step, envelope(0), [ref(tensorBytes(0))], quiet))
  const calls = [call(), call(), call(), call()]
  await until(() => ends.length === 4)
  for (const end of ends) end()
  await Promise.all(calls)
  t.same(served.toSorted(), ['a', 'a', 'b', 'b'])
})

await t.test(
  'a router that cannot take a call lets another have it; what it may have begun is lost',
  WITH_NATS,
  async (t) => {
    const { server, broker } = await openServer(t)
    const step = await openTestStep(t, broker, 'step', echo)
    const proxy = await startFaultProxy({ port: server.port })
    t.teardown(() => proxy.close())
    const { handle, ends } = held()
    const settings = { maxCalls: 1 }
    const mortal = await openTestRouter(t, brokerAt(`nats://127.0.0.1:${proxy.port}`), 'mortal', {
      executor: executing(handle),
      settings,
    })
    await until(() => mortal.changed.length > 0)
    const call = (o: { signal: AbortSignal } = quiet): Promise<StepResponse[]> =>
      collect(sendToRouter(step, envelope(0), [ref(tensorBytes(0))], o))
    await retried(() => step.routers.ask('ready', {}, quiet))
    const lost = failureOf(call())
    await until(() => ends.length === 1)
    t.match(await failureOf(call()), { reason: 'OVERLOADED' }, 'there is no other')

    const spare = await openTestRouter(t, broker, 'spare', { executor: executing(echo), settings })
    await until(() => spare.changed.length > 0)
    t.equal((await retried(call)).length, 1, 'the full one refuses, the other takes it')
    proxy.refuse()
    proxy.cut()
    t.match(await lost, {
      reason: 'STEP_LOST',
      code: 'UNAVAILABLE',
      details: { replica: 'mortal' },
    })
    for (let i = 0; i < 3; i++) t.equal((await call()).length, 1)
    proxy.accept()
  },
)

await t.test('a router that drains is called only if no other is there', WITH_NATS, async (t) => {
  const { broker } = await openServer(t)
  const step = await openTestStep(t, broker, 'step', echo)
  const { handle, ends } = held()
  const leaving = await openTestRouter(t, broker, 'leaving', { executor: executing(handle) })
  await until(() => leaving.changed.length > 0)
  const call = (): Promise<StepResponse[]> =>
    collect(sendToRouter(step, envelope(0), [ref(tensorBytes(0))], quiet))
  await retried(() => step.routers.ask('ready', {}, quiet))
  const first = call()
  await until(() => ends.length === 1)
  let isDrained = false
  const drained = leaving.member.drain(quiet).then(() => (isDrained = true))
  const second = call()
  await until(() => ends.length === 2)
  t.notOk(isDrained, 'it waits for them')
  const staying = await openTestRouter(t, broker, 'staying', { executor: executing(echo) })
  await until(() => staying.changed.length > 0)
  const asked = async (): Promise<unknown> =>
    Reflect.get(Object(await step.routers.ask('ready', {}, quiet)), 'member')
  for (let i = 0; i < 5 || (await asked()) !== 'staying'; i++) await asked()
  t.equal((await call()).length, 1)
  t.equal(ends.length, 2)
  for (const end of ends) end()
  await Promise.all([first, second, drained])
})

await t.test(
  'cancel, time and a slow reader hold for calls of models too',
  WITH_NATS,
  async (t) => {
    const { broker } = await openServer(t)
    const step = await openTestStep(t, broker, 'step', echo)
    const aborted: unknown[] = []
    const remaining: (number | undefined)[] = []
    let sent = 0
    const streams: TestHandler = async ({ remainingMs }, _tensors, sink, { signal }) => {
      remaining.push(remainingMs)
      signal.addEventListener('abort', () => aborted.push(signal.reason))
      for (sent = 0; !signal.aborted; await sink.ready()) {
        sink.send(answer(tensorBytes(8, sent), { index: sent++, final: false }))
      }
      throw signal.reason
    }
    const router = await openTestRouter(t, broker, 'router', { executor: executing(streams) })
    await until(() => router.changed.length > 0)
    await retried(() => step.routers.ask('ready', {}, quiet))
    const cancel = new AbortController()
    const input = ref(tensorBytes(0))
    const stream = sendToRouter(step, envelope(0, { remainingMs: 60_000 }), [input], cancel)
    const responses = stream[Symbol.asyncIterator]()
    await responses.next()
    await until(() => sent > ENDPOINT_DEFAULTS.responseCredits)
    cancel.abort(new ServeError('CANCELLED', 'the caller is answered'))
    await until(() => aborted.length === 1)
    t.match(aborted, [{ reason: 'CANCELLED', message: 'the caller is answered' }])
    const most = ENDPOINT_DEFAULTS.responseCredits + RESPONSE_WINDOW.responses
    t.ok(sent <= most, `${sent} were sent to a reader that has taken one`)
    t.ok((remaining[0] ?? 0) <= 60_000 && (remaining[0] ?? 0) > 0, `${remaining[0]} ms`)

    const timed = sendToRouter(step, envelope(0, { remainingMs: 200 }), [input], quiet)
    const late = failureOf(collect(timed))
    await until(() => aborted.length === 2)
    t.match(aborted[1], { reason: 'DEADLINE_EXCEEDED' })
    t.match(await late, { reason: 'DEADLINE_EXCEEDED' })
  },
)
