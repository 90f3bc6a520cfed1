// needs: nats
import { until as eventually, startNatsServer } from '@tutti/chassis/testing'
import type { StepResponse } from '@tutti/tensor'
import t from 'tap'
import type { BrokerOptions, StepEndpoint } from '../endpoints.ts'
import {
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
  type TestRouter,
  tensorBytes,
  until,
  WITH_NATS,
} from '../testing/endpoints.ts'
import { executing } from '../testing/envelopes.ts'

const quiet = { signal: new AbortController().signal }
const SIZES = [10, 70_000, 1_500_000]

async function openBrokers(t: Teardown) {
  const [primary, former] = await Promise.all([startNatsServer(), startNatsServer()])
  for (const server of [primary, former]) t.teardown(() => server.stop())
  return {
    servers: { primary, former },
    primary: { broker: brokerAt(primary.url) },
    former: { broker: brokerAt(former.url) },
    both: { broker: brokerAt(primary.url), former: brokerAt(former.url) },
  }
}

interface Access {
  readonly broker: BrokerOptions
  readonly former?: BrokerOptions
}

const step = (t: Teardown, { broker, ...o }: Access, member: string): Promise<StepEndpoint> =>
  openTestStep(t, broker, member, echo, o)
const router = (t: Teardown, { broker, ...o }: Access, member: string): Promise<TestRouter> =>
  openTestRouter(t, broker, member, { ...o, executor: executing(echo) })

/** Calls as routers make them, one after the other, at the least busy replica, until it is stopped. */
function startCalls(callers: readonly TestRouter[]) {
  const failures: unknown[] = []
  const served = new Map<string, number>()
  let calls = 0
  const state = { isStopped: false }
  const run = async ({ member, directory }: TestRouter, i: number): Promise<void> => {
    const avoid = new Set<string>()
    while (!state.isStopped) {
      const size = SIZES[calls % SIZES.length] ?? 0
      const place = directory.places.acquire(SERVED, { avoid })
      if (place === undefined) {
        failures.push(`router ${i} has no replica`)
        return
      }
      const to = place.address
      try {
        const [got] = await collect(
          sendTo({ member } as TestRouter, to, envelope(size), [ref(tensorBytes(size))], quiet),
        )
        if (!isSame(size, got)) failures.push(`${size} other bytes`)
        calls += 1
        served.set(to.replica, (served.get(to.replica) ?? 0) + 1)
        avoid.clear()
      } catch (error) {
        // What a replica that goes away has refused goes to another, as a router's own retries do.
        const reason = String(Reflect.get(Object(error), 'reason'))
        if (reason !== 'SERVER_STOPPING' && reason !== 'STEP_UNAVAILABLE') failures.push(error)
        avoid.add(to.replica)
      } finally {
        place.inFlight -= 1
      }
    }
  }
  const running = callers.map(run)
  return {
    served,
    more: (count: number): Promise<void> => {
      const wanted = calls + count
      return until(() => calls >= wanted || failures.length > 0)
    },
    stop: async (): Promise<readonly unknown[]> => {
      state.isStopped = true
      await Promise.all(running)
      return failures
    },
  }
}

const isSame = (size: number, got: StepResponse | undefined): boolean =>
  Buffer.from(tensorBytes(size)).equals(got?.outputs[0]?.data ?? new Uint8Array())

async function leave(member: Pick<StepEndpoint, 'drain' | 'close'>): Promise<void> {
  await member.drain(quiet)
  await member.close()
}

await t.test(
  'members move from one broker to another while calls go on',
  { ...WITH_NATS, timeout: 120_000 },
  async (t) => {
    const { servers, former, both, primary } = await openBrokers(t)
    const oldSteps = [await step(t, former, 'old-1'), await step(t, former, 'old-2')]
    const oldRouter = await router(t, former, 'old-router')
    await until(() => oldRouter.directory.isServed(SERVED))
    const before = startCalls([oldRouter])
    await before.more(20)

    const newRouter = await router(t, both, 'new-router')
    await until(() => newRouter.directory.isServed(SERVED))
    const mixed = startCalls([newRouter])
    const newSteps = [await step(t, both, 'new-1'), await step(t, both, 'new-2')]
    for (const { changed } of [oldRouter, newRouter]) {
      await until(() => changed.includes('new-1') && changed.includes('new-2'))
    }
    await Promise.all([before.more(40), mixed.more(40)])
    t.same(newRouter.changed.toSorted(), ['new-1', 'new-2', 'old-1', 'old-2'], 'each once')
    for (const { served } of [before, mixed]) {
      t.same([...served.keys()].toSorted(), ['new-1', 'new-2', 'old-1', 'old-2'])
    }
    for (const oldStep of oldSteps) {
      await leave(oldStep)
      await Promise.all([before.more(20), mixed.more(20)])
    }
    t.same(await before.stop(), [])
    await leave(oldRouter.member)

    await servers.former.kill()
    await mixed.more(40)
    t.ok(newRouter.member.isConnected, 'ready needs the primary access only')
    t.same(
      [newRouter.member.obstacles, newRouter.gone.toSorted()],
      [[], ['old-1', 'old-2', 'old-router']],
    )

    const lastStep = await step(t, primary, 'last')
    await until(() => newRouter.changed.includes('last'))
    for (const newStep of newSteps) await leave(newStep)
    await mixed.more(20)
    const lastRouter = await router(t, primary, 'last-router')
    await until(() => lastRouter.directory.isServed(SERVED))
    const after = startCalls([lastRouter])
    await Promise.all([after.more(20), mixed.more(20)])
    t.same(await mixed.stop(), [])
    await leave(newRouter.member)
    await after.more(20)
    t.same(await after.stop(), [])
    t.ok(lastStep.isConnected)
  },
)

await t.test('a replica on both is one, with one load', WITH_NATS, async (t) => {
  const { both } = await openBrokers(t)
  const replica = await step(t, both, 'step')
  const one = await router(t, both, 'router')
  await until(() => one.directory.isServed(SERVED))
  t.equal(one.directory.places.byRevision.size, 1)
  const [places] = [...one.directory.places.byRevision.values()]
  t.equal(places?.length, 1)
  t.match(await one.member.ask('step', 'statistics', null, quiet), { member: 'step' })
  await leave(replica)
  await until(() => one.gone.length > 0)
  t.same(one.gone, ['step'], 'it goes once')
  t.notOk(one.directory.isServed(SERVED))
})

await t.test(
  'while the primary broker is away the former one carries the calls',
  WITH_NATS,
  async (t) => {
    const { servers, both } = await openBrokers(t)
    await step(t, both, 'step')
    const one = await router(t, both, 'router')
    await until(() => one.directory.isServed(SERVED))
    await until(() => one.changed.length > 0)
    await servers.primary.kill()
    await until(() => !one.member.isConnected)
    t.match(one.member.obstacles, [/^the broker is not connected/])
    const size = 70_000
    const call = (): Promise<StepResponse[]> =>
      collect(sendTo(one, { replica: 'step' }, envelope(size), [ref(tensorBytes(size))], quiet))
    // The access to the former broker may have been opened only now: ready needs the primary one.
    const carried = await eventually('the former broker carries a call', () =>
      call().catch(() => undefined),
    )
    t.ok(isSame(size, carried?.[0]))
    await servers.former.kill()
    await eventually('it is so', async () => (await call().catch(() => undefined)) === undefined)
    t.match(await failureOf(call()), { reason: 'STEP_UNAVAILABLE', message: /the broker is away/ })
    await servers.primary.restart()
    await until(() => one.member.isConnected)
    await eventually('it is so', async () => (await call().catch(() => undefined)) !== undefined)
    t.same(one.gone, [], 'nobody was declared dead')
  },
)

await t.test('models of steps call routers of both brokers', WITH_NATS, async (t) => {
  const { servers, former, both, primary } = await openBrokers(t)
  const caller = await step(t, both, 'step')
  const call = (size: number): Promise<StepResponse[]> =>
    collect(
      sendToRouter(
        caller,
        envelope(size, { version: 0, revision: '' }),
        [ref(tensorBytes(size))],
        quiet,
      ),
    )
  const hears = (): Promise<unknown> =>
    eventually(
      'a router is heard',
      async () => (await call(1).catch(() => undefined)) !== undefined,
    )
  const oldRouter = await router(t, former, 'old')
  await hears()
  for (const size of SIZES) t.ok(isSame(size, (await call(size))[0]), `${size} bytes`)
  t.match(await caller.askRouters('unpinned', {}, quiet), [{ status: 'fulfilled' }])
  t.ok(caller.isConnected)
  await servers.former.kill()
  await until(() => !caller.isConnected)
  t.match(await failureOf(call(1)), { reason: 'STEP_UNAVAILABLE' })
  await servers.former.restart()
  await until(() => caller.isConnected)
  const newRouter = await router(t, primary, 'new')
  await eventually(
    'it is so',
    async () => (await caller.askRouters('ready', {}, quiet)).length === 2,
  )
  await leave(oldRouter.member)
  await eventually(
    'it is so',
    async () => (await caller.askRouters('ready', {}, quiet)).length === 1,
  )
  await servers.former.kill()
  t.ok(isSame(10, (await call(10))[0]))
  t.ok(caller.isConnected, 'no router is known behind the broker that is away')
  t.ok(newRouter.member.isConnected)
})

const accountOf = (user: string) => ({ users: [{ user, password: user }] })

await t.test('two accounts of one server are two brokers', WITH_NATS, async (t) => {
  const accounts = JSON.stringify({ a: accountOf('a'), b: accountOf('b') })
  const server = await startNatsServer({ config: `accounts: ${accounts}` })
  t.teardown(() => server.stop())
  const signedIn = (user: string): BrokerOptions =>
    brokerAt(server.url, { user, password: () => user })
  const both = { broker: signedIn('b'), former: signedIn('a') }
  await step(t, { broker: signedIn('a') }, 'old')
  await step(t, both, 'new')
  const one = await router(t, both, 'router')
  await until(() => one.changed.length === 2)
  const calls = startCalls([one])
  await calls.more(20)
  t.same(await calls.stop(), [])
  t.same([...calls.served.keys()].toSorted(), ['new', 'old'])
})
