// needs: nats
import { freePort, startFaultProxy, startNatsServer } from '@tutti/chassis/testing'
import t from 'tap'
import {
  brokerAt,
  collect,
  echo,
  envelope,
  failureOf,
  membersOver,
  ref,
  SERVED,
  sendTo,
  type TestRouter,
  TRANSPORTS,
  tensorBytes,
  until,
  WITH_NATS,
} from '../testing/endpoints.ts'
import type { TestHandler } from '../testing/envelopes.ts'
import { held, openRelayedBroker } from '../testing/outages.ts'

const quiet = { signal: new AbortController().signal }

/** Asks the step for its own bytes, or for what a held one answers. @returns whether they came. */
async function call(router: TestRouter, size = 0): Promise<boolean> {
  const bytes = ref(tensorBytes(size))
  const sent = sendTo(router, { replica: 'step' }, envelope(size), [bytes], quiet)
  const [response] = await collect(sent)
  const expected = tensorBytes(size === 0 ? 1 : size)
  return Buffer.from(expected).equals(response?.outputs[0]?.data ?? new Uint8Array())
}

/** So that a member soon counts as dead, and a broker as away. */
const SETTINGS = { heartbeatMs: 100, deadAfterMs: 1000, connectMs: 300 }
const LONG_MS = 2000

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

for (const via of TRANSPORTS) {
  if (via === 'nats') continue
  const { openTestRouter, openTestStep } = membersOver(via)
  await t.test(`over ${via}`, WITH_NATS, async (t) => {
    await t.test('calls go on, and new ones are made, while the broker is away', async (t) => {
      const server = await startNatsServer()
      t.teardown(() => server.stop())
      const broker = brokerAt(server.url)
      const router = await openTestRouter(t, broker, 'router')
      const { handle, ends } = held()
      const step = await openTestStep(t, broker, 'step', (e, tensors, sink, o) =>
        e.inputs[0]?.shape[0] === 0 ? handle(e, tensors, sink, o) : echo(e, tensors, sink, o),
      )
      await until(router.isReached)
      const before = call(router)
      await until(() => ends.length === 1)
      await server.kill()
      await until(() => !router.member.isConnected && !step.isConnected)
      const sizes = [10, 70_000, 3_000_000]
      for (const size of sizes) t.ok(await call(router, size))
      ends[0]?.()
      t.ok(await before)
      await step.drain({ signal: AbortSignal.timeout(5000) })
      t.match(await failureOf(call(router, 10)), { reason: 'SERVER_STOPPING' }, 'it drains')
    })

    await t.test('what breaks with its connection ends, typed, at both ends', async (t) => {
      const server = await startNatsServer()
      t.teardown(() => server.stop())
      const broker = brokerAt(server.url)
      const router = await openTestRouter(t, broker, 'router')
      const { handle, ends } = held()
      const step = await openTestStep(t, broker, 'step', handle)
      await until(router.isReached)
      await server.kill()
      await until(() => !router.member.isConnected)
      const lost = failureOf(call(router))
      await until(() => ends.length === 1)
      await step.close()
      t.match(await lost, { code: 'UNAVAILABLE', reason: 'STEP_LOST' })
      t.same(router.member.direct, [])
      const text = "replica 'step' cannot be reached: the broker is away"
      t.match(await failureOf(call(router)), { reason: 'STEP_UNAVAILABLE', message: text })
    })

    for (const cut of ['router', 'step']) {
      await t.test(`a ${cut} that the broker does not reach is not given up`, async (t) => {
        const { proxy, direct, relayed } = await openRelayedBroker(t)
        const at = (role: string) => (role === cut ? relayed : direct)
        const router = await openTestRouter(t, at('router'), 'router', { settings: SETTINGS })
        const { handle, ends } = held()
        const aborted: unknown[] = []
        const noting: TestHandler = (e, tensors, sink, o) => {
          o.signal.addEventListener('abort', () => aborted.push(o.signal.reason))
          return handle(e, tensors, sink, o)
        }
        await openTestStep(t, at('step'), 'step', noting, { settings: SETTINGS })
        await until(router.isReached)
        const before = call(router)
        await until(() => ends.length === 1)
        proxy.stall()
        await pause(LONG_MS)
        const after = call(router)
        await until(() => ends.length === 2)
        for (const end of ends) end()
        t.same(await Promise.all([before, after]), [true, true])
        t.ok(router.directory.isServed(SERVED))
        t.same([router.gone, aborted], [[], []])
      })
    }
  })
}

await t.test(
  'a step that neither the broker nor its connection brings anything of is suspect, then dead',
  WITH_NATS,
  async (t) => {
    const { proxy, direct, relayed } = await openRelayedBroker(t)
    const port = await freePort()
    const connection = await startFaultProxy({ port })
    t.teardown(async () => {
      connection.resume()
      connection.cut()
      await connection.close()
    })
    const host = '127.0.0.1'
    const { openTestRouter, openTestStep } = membersOver('tls')
    const router = await openTestRouter(t, direct, 'router')
    const { handle, ends } = held()
    await openTestStep(t, relayed, 'step', handle, {
      direct: { kind: 'tls', listen: { host, port }, announce: { host, port: connection.port } },
    })
    await until(() => router.isReached() && router.member.direct.length > 0)
    const lost = failureOf(call(router))
    await until(() => ends.length === 1)
    proxy.stall()
    connection.stall()
    await until(() => !router.directory.isServed(SERVED))
    t.same(router.gone, [], 'suspect: no new work, nothing has failed')
    t.match(await lost, { reason: 'STEP_LOST', details: { replica: 'step' } })
    t.same([router.gone, router.member.direct], [['step'], []])
  },
)
