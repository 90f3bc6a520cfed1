// needs: nats
import { type FaultProxy, freePort, startFaultProxy } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import t from 'tap'
import type { DirectOptions } from '../direct/direct-sockets.ts'
import type { BrokerOptions } from '../endpoints.ts'
import { directOptions } from '../testing/direct-options.ts'
import {
  collect,
  echo,
  envelope,
  failureOf,
  membersOver,
  openBroker,
  openTestRouter,
  openTestStep,
  ref,
  SERVED,
  sendTo,
  type Teardown,
  type TestRouter,
  TRANSPORTS,
  tensorBytes,
  until,
  WITH_NATS,
} from '../testing/endpoints.ts'
import type { TestHandler } from '../testing/envelopes.ts'

const quiet = { signal: new AbortController().signal }

/** Calls the echo. @returns true if its own bytes came back. */
async function isEchoed(router: TestRouter, size: number, seed = 1): Promise<boolean> {
  const bytes = tensorBytes(size, seed)
  const offered = envelope(size, { requestKey: `${size} ${seed}` })
  const [response] = await collect(
    sendTo(router, { replica: 'step' }, offered, [ref(bytes)], quiet),
  )
  return Buffer.from(bytes).equals(response?.outputs[0]?.data ?? new Uint8Array())
}

for (const via of TRANSPORTS) {
  await t.test(`calls of all sizes are answered over ${via}`, WITH_NATS, async (t) => {
    const { openTestRouter, openTestStep } = membersOver(via)
    const broker = await openBroker(t)
    const router = await openTestRouter(t, broker, 'router')
    await openTestStep(t, broker, 'step', echo)
    await until(router.isReached)
    t.same(router.member.direct, via === 'nats' ? [] : ['step'])
    for (const size of [0, 10, 70_000, 786_432, 8_000_000]) t.ok(await isEchoed(router, size))
    t.match(await router.member.ask('step', 'describe', {}, quiet), { member: 'step' })
  })
}

await t.test('the broker carries what only one end could carry directly', WITH_NATS, async (t) => {
  const tcp = directOptions('tcp')
  const cases: [DirectOptions | undefined, DirectOptions | undefined][] = [
    [tcp, undefined],
    [undefined, tcp],
    [tcp, directOptions('tls')],
    [directOptions('unix'), directOptions('unix')],
  ]
  for (const [routers, steps] of cases) {
    const broker = await openBroker(t)
    const router = await openTestRouter(t, broker, 'router', { direct: routers })
    await openTestStep(t, broker, 'step', echo, { direct: steps })
    await until(() => router.directory.isServed(SERVED))
    t.ok(await isEchoed(router, 300_000))
    t.same(router.member.direct, [])
    const { fallbacks } = router.member.transport.direct ?? {}
    const isMet = routers !== undefined && steps !== undefined
    t.same([...(fallbacks ?? [])], isMet ? [['address', 1]] : [])
  }
})

/** A step whose direct connections go through a relay, and which counts what it executes. */
async function openRelayed(t: Teardown, broker: BrokerOptions, handle: TestHandler = echo) {
  const port = await freePort()
  const proxy = await startFaultProxy({ port })
  t.teardown(() => closeProxy(proxy))
  const announce = { host: '127.0.0.1', port: proxy.port }
  const direct: DirectOptions = { kind: 'tls', listen: { host: '127.0.0.1', port }, announce }
  const executed = new Map<string, number>()
  const settings = { stallMs: 300, silenceMs: 500, directConnectMs: 5000 }
  const counting: TestHandler = (offered, ...args) => {
    const { requestKey } = offered
    executed.set(requestKey, (executed.get(requestKey) ?? 0) + 1)
    return handle(offered, ...args)
  }
  await openTestStep(t, broker, 'step', counting, { direct, settings })
  const router = await openTestRouter(t, broker, 'router', {
    direct: { kind: 'tls' },
    settings: { ...settings, directRetryMs: 200 },
  })
  await until(() => router.directory.isServed(SERVED) && router.member.direct.length === 1)
  return { router, proxy, executed }
}

async function closeProxy(proxy: FaultProxy): Promise<void> {
  proxy.resume()
  proxy.cut()
  await proxy.close()
}

await t.test(
  'a call whose connection breaks in a tensor goes on over the broker',
  WITH_NATS,
  async (t) => {
    const { router, proxy, executed } = await openRelayed(t, await openBroker(t))
    proxy.delay(20)
    const size = 24 * 1024 * 1024
    const echoed = isEchoed(router, size)
    await new Promise((resolve) => setTimeout(resolve, 150))
    proxy.refuse()
    proxy.cut()
    t.ok(await echoed)
    t.same([...executed], [[`${size} 1`, 1]])
    t.same(router.member.direct, [])
    const { direct } = router.member.transport
    t.match(direct, { kind: 'tls', open: 0 })
    t.equal(direct?.fallbacks.get('broken'), 1)
    proxy.accept()
    await until(() => router.member.direct.length === 1)
    t.ok(await isEchoed(router, 1_000_000, 2))
  },
)

await t.test('an offer that is lost with its connection is made again', WITH_NATS, async (t) => {
  const { router, proxy, executed } = await openRelayed(t, await openBroker(t))
  proxy.stall()
  const echoed = isEchoed(router, 10)
  await new Promise((resolve) => setTimeout(resolve, 50))
  t.equal(executed.size, 0)
  proxy.cut()
  t.ok(await echoed)
  t.same([...executed.values()], [1])
})

await t.test(
  'connections that break all the time lose no call and execute none twice',
  { ...WITH_NATS, timeout: 120_000 },
  async (t) => {
    const { router, proxy, executed } = await openRelayed(t, await openBroker(t))
    const over = new AbortController()
    const failures: string[] = []
    const breaking = (async () => {
      for (let i = 0; !over.signal.aborted; i += 1) {
        await new Promise((resolve) => setTimeout(resolve, 20 + ((i * 37) % 90)))
        proxy.cut()
      }
    })()
    let right = 0
    const caller = async (of: number): Promise<void> => {
      for (let i = 0; i < 25; i += 1) {
        const size = [10, 5000, 70_000, 800_000, 3_000_000][(i + of) % 5] ?? 0
        try {
          if (await isEchoed(router, size, of * 100 + i)) right += 1
        } catch (error) {
          failures.push(ServeError.from(error).reason)
        }
      }
    }
    await Promise.all([1, 2, 3, 4].map(caller))
    over.abort()
    await breaking
    t.equal(right + failures.length, 100, 'each ended, with its bytes or an error')
    t.ok(right > 50, `${right} of 100`)
    t.same(
      failures.filter((reason) => reason !== 'STEP_LOST' && reason !== 'STEP_UNAVAILABLE'),
      [],
    )
    t.same(
      [...executed.values()].filter((times) => times !== 1),
      [],
      'none was executed twice',
    )
  },
)

await t.test('a step that is killed is noticed by its connection', WITH_NATS, async (t) => {
  const broker = await openBroker(t)
  const { openTestRouter, openTestStep } = membersOver('tcp')
  const router = await openTestRouter(t, broker, 'router')
  let started = 0
  const step = await openTestStep(t, broker, 'step', async () => {
    started += 1
    await new Promise(() => {})
  })
  await until(router.isReached)
  const lost = failureOf(isEchoed(router, 10))
  await until(() => started === 1)
  await step.close()
  t.match(await lost, { reason: 'STEP_LOST' })
  t.same([router.member.direct, router.gone], [[], ['step']])
})
