// needs: nats
import { startNatsServer } from '@tutti/chassis/testing'
import type { StepResponse } from '@tutti/tensor'
import t from 'tap'
import {
  brokerAt,
  collect,
  echo,
  envelope,
  failureOf,
  membersOver,
  openTestRouter,
  openTestStep,
  ref,
  SERVED,
  sendTo,
  type TestRouter,
  TRANSPORTS,
  tensorBytes,
  until,
  WITH_NATS,
} from '../testing/endpoints.ts'
import { held, openRelayedBroker } from '../testing/outages.ts'

const quiet = { signal: new AbortController().signal }

function call(router: TestRouter, replica: string, size = 0): Promise<StepResponse[]> {
  const bytes = tensorBytes(size)
  return collect(sendTo(router, { replica }, envelope(size), [ref(bytes)], quiet))
}

/** Calls until the replica is reached: after a reconnect it may be a moment later than we are. */
async function retried(router: TestRouter, replica: string, size = 0): Promise<StepResponse[]> {
  for (;;) {
    try {
      return await call(router, replica, size)
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }
}

// The changes that direct connections make to these are in direct-outage.test.ts.
await t.test(
  'a broker that restarts fails what is in flight, and all is well again',
  WITH_NATS,
  async (t) => {
    const server = await startNatsServer()
    t.teardown(() => server.stop())
    const broker = brokerAt(server.url)
    const router = await openTestRouter(t, broker, 'router')
    const { handle, ends } = held()
    const aborted: unknown[] = []
    await openTestStep(t, broker, 'step', (e, tensors, sink, o) => {
      o.signal.addEventListener('abort', () => aborted.push(o.signal.reason))
      return handle(e, tensors, sink, o)
    })
    await until(router.isReached)
    const lost = failureOf(call(router, 'step'))
    await until(() => ends.length === 1)
    await server.kill()
    t.match(await lost, {
      reason: 'STEP_LOST',
      code: 'UNAVAILABLE',
      details: { replica: 'step' },
    })
    await until(() => aborted.length === 1)
    t.match(aborted, [{ reason: 'STEP_LOST' }], 'the step hears of it too')
    t.notOk(router.member.isConnected)
    t.ok(router.member.awayMs < Infinity, 'it is away since it was lost')
    t.match(await failureOf(call(router, 'step')), { reason: 'STEP_UNAVAILABLE' })
    t.ok(router.directory.isServed(SERVED), 'no member is suspected while the broker is away')
    t.same(router.gone, [])
    await server.restart()
    await until(() => router.member.isConnected)
    await until(() => ends.length > 0 || router.directory.isServed(SERVED))
    const again = retried(router, 'step')
    await until(() => ends.length === 2)
    for (const end of ends) end()
    t.equal((await again).length, 1)
  },
)

await t.test(
  'a router behind a network that stalls fails what is in flight, typed',
  WITH_NATS,
  async (t) => {
    const { proxy, direct, relayed } = await openRelayedBroker(t)
    const router = await openTestRouter(t, relayed, 'router')
    const { handle, ends } = held()
    const aborted: unknown[] = []
    await openTestStep(t, direct, 'step', (e, tensors, sink, o) => {
      o.signal.addEventListener('abort', () => aborted.push(o.signal.reason))
      return handle(e, tensors, sink, o)
    })
    await until(router.isReached)
    const lost = failureOf(call(router, 'step'))
    await until(() => ends.length === 1)
    proxy.stall()
    t.match(await lost, { reason: 'STEP_LOST' })
    await until(() => aborted.length === 1)
    t.match(
      aborted,
      [{ reason: 'CANCELLED' }],
      'the step gives up the work of a router that is silent',
    )
    t.same(router.gone, [], 'the replica is not blamed for it')
    proxy.resume()
    await until(() => router.member.isConnected)
    const again = retried(router, 'step')
    await until(() => ends.length === 2)
    for (const end of ends) end()
    t.equal((await again).length, 1)
  },
)

await t.test('a replica that is cut off answers so when it is back', WITH_NATS, async (t) => {
  const { proxy, direct, relayed } = await openRelayedBroker(t)
  const router = await openTestRouter(t, direct, 'router')
  const { handle, ends } = held()
  await openTestStep(t, relayed, 'step', handle)
  await until(router.isReached)
  const lost = failureOf(call(router, 'step'))
  await until(() => ends.length === 1)
  proxy.cut()
  t.match(await lost, { reason: 'STEP_LOST' })
  const again = retried(router, 'step')
  await until(() => ends.length === 2)
  for (const end of ends) end()
  t.equal((await again).length, 1)
})

await t.test('a replica that is silent is suspect first, then dead', WITH_NATS, async (t) => {
  const { proxy, direct, relayed } = await openRelayedBroker(t)
  const router = await openTestRouter(t, direct, 'router')
  const { handle, ends } = held()
  await openTestStep(t, relayed, 'silent', handle)
  await until(router.isReached)
  const lost = failureOf(call(router, 'silent'))
  await until(() => ends.length === 1)
  proxy.stall()
  await until(() => !router.directory.isServed(SERVED))
  t.same(router.gone, [], 'suspect: no new work, nothing has failed')
  t.match(await lost, { reason: 'STEP_LOST', details: { replica: 'silent' } })
  t.same(router.gone, ['silent'])
  proxy.resume()
  await until(router.isReached)
  t.same(router.changed, ['silent', 'silent'], 'and it is asked again when it is back')
})

await t.test('inputs that do not arrive whole cannot have run', WITH_NATS, async (t) => {
  const { proxy, direct, relayed } = await openRelayedBroker(t)
  const router = await openTestRouter(t, direct, 'router')
  let executions = 0
  await openTestStep(t, relayed, 'step', (...args) => {
    executions += 1
    return echo(...args)
  })
  await until(router.isReached)
  proxy.delay(50)
  const lost = failureOf(call(router, 'step', 32 * 1024 * 1024))
  await until(router.isReached)
  await new Promise((resolve) => setTimeout(resolve, 150))
  proxy.refuse()
  proxy.cut()
  t.match(await lost, { reason: 'STEP_UNAVAILABLE' })
  t.equal(executions, 0)
})

for (const via of TRANSPORTS) {
  const { openTestRouter, openTestStep } = membersOver(via)
  await t.test(`over ${via}`, WITH_NATS, async (t) => {
    await t.test('members come before their broker', WITH_NATS, async (t) => {
      const { server, proxy, relayed } = await openRelayedBroker(t)
      proxy.refuse()
      const settings = { firstConnectMs: 50 }
      const router = await openTestRouter(t, relayed, 'router', { settings })
      await openTestStep(t, relayed, 'step', echo, { settings })
      t.notOk(router.member.isConnected)
      t.equal(router.member.awayMs, Infinity, 'it was never there')
      t.match(await failureOf(call(router, 'step')), { reason: 'STEP_UNAVAILABLE' })
      proxy.accept()
      await until(router.isReached)
      t.equal(router.member.awayMs, 0)
      t.equal((await retried(router, 'step')).length, 1)
      t.ok(server.pid > 0)
    })

    await t.test('a member closes though its broker is silent', WITH_NATS, async (t) => {
      const { proxy, relayed } = await openRelayedBroker(t)
      const router = await openTestRouter(t, relayed, 'router', { settings: { connectMs: 100 } })
      proxy.stall()
      await router.member.close()
      t.notOk(router.member.isConnected)
    })
  })
}
