import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { createHealth, silentLogger } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import t from 'tap'
import { settle } from '../testing/settle.ts'
import { testMetrics } from '../testing/test-metrics.ts'
import { watchLoop } from './loop-watch.ts'
import { type ManagedCache, Manager, type ManagerOptions } from './manager.ts'

function testCache(plural: string) {
  const synced = Promise.withResolvers<void>()
  const state = { hasSynced: false, isStuck: false }
  const events: string[] = []
  const cache: ManagedCache = {
    resource: { plural },
    start: () => events.push('start'),
    get hasSynced() {
      return state.hasSynced
    },
    synced: synced.promise,
    isStuck: () => state.isStuck,
    reading: () => ({ resource: plural, lists: 1, watches: 1, errors: 0, objects: 3 }),
    // oxlint-disable-next-line typescript/require-await -- there is nothing to close
    close: async () => void events.push('close'),
  }
  const sync = (): void => {
    state.hasSynced = true
    synced.resolve()
  }
  return { cache, state, events, sync }
}

function rig(o: Partial<ManagerOptions> = {}) {
  const clock = createManualClock()
  const health = createHealth()
  const { metrics, runtime } = testMetrics()
  const models = testCache('models')
  const told: string[] = []
  const drained = Promise.withResolvers<void>()
  const lease = { isLeader: true, holdsLease: true }
  const election = {
    ...lease,
    start: () => told.push('election'),
    // oxlint-disable-next-line typescript/require-await -- there is nothing to release
    release: async () => void told.push('release'),
    stop: () => told.push('election stopped'),
  }
  const manager = new Manager({
    caches: [models.cache],
    controllers: [
      {
        name: 'model',
        start: () => told.push('lead'),
        stop: () => told.push('stop'),
        abort: () => told.push('abort'),
        drained: () => drained.promise,
      },
    ],
    election: election as never,
    // oxlint-disable-next-line typescript/require-await -- there is nothing on its way
    events: { close: async () => void told.push('events') },
    probes: { host: '127.0.0.1', port: 0 },
    scrapes: { host: '127.0.0.1', port: 0 },
    health,
    metrics,
    runtimeMetrics: runtime,
    clock,
    log: silentLogger,
    // oxlint-disable-next-line typescript/require-await -- there is nothing to close
    close: async () => void told.push('closed'),
    ...o,
  })
  const get = async (which: number, path: string, method = 'GET') => {
    const response = await fetch(`http://127.0.0.1:${manager.ports[which]}${path}`, { method })
    return { status: response.status, text: await response.text() }
  }
  return { manager, clock, health, models, told, drained, election, get }
}

const { signal } = new AbortController()

await t.test('it starts and stops in order', async (t) => {
  const { manager, clock, health, models, told, drained, get } = rig()
  const started = manager.start({ signal })
  while (manager.ports.length < 2) await settle()
  t.match(await get(0, '/readyz'), { status: 503, text: /models are not read yet/ })
  t.match(await get(0, '/livez'), { status: 200 })
  t.same(told, [])
  models.sync()
  await started
  t.same(told, ['election'])
  manager.lead()
  t.same(told, ['election', 'lead'])
  health.release('starting')
  t.same(await get(0, '/readyz'), { status: 200, text: 'ok\n' })
  t.match(await get(1, '/metrics'), { status: 200, text: /cache_objects\{resource="models"\} 3/ })
  t.match(await get(1, '/livez'), { status: 404, text: /want \/metrics/ })
  t.match(await get(0, '/livez', 'POST'), { status: 405 })

  told.length = 0
  manager.stopAccepting()
  manager.lead()
  const draining = manager.drain()
  clock.advance(19_999)
  t.same(told, ['stop'], 'it leads no longer')
  clock.advance(1)
  t.same(told, ['stop', 'abort'])
  drained.resolve()
  await draining
  t.same(told, ['stop', 'abort', 'events', 'release'])
  await manager.close()
  t.equal(told.at(-1), 'closed')
  t.same(models.events, ['start', 'close'])
  t.equal(clock.pending, 0)
})

await t.test('what a restart would heal makes it not live', async (t) => {
  const { manager, models, election, get } = rig()
  models.sync()
  await manager.start({ signal })
  t.teardown(() => manager.close())
  models.state.isStuck = true
  t.match(await get(0, '/livez'), { status: 503, text: /the watch of models is silent/ })
  models.state.isStuck = false
  Object.assign(election, { holdsLease: false })
  t.match(await get(0, '/livez'), { status: 503, text: /the lease is not renewed/ })
})

await t.test('silent connections do not keep probes and scrapes out', async (t) => {
  const { manager, models, health, get } = rig()
  models.sync()
  await manager.start({ signal })
  t.teardown(() => manager.close())
  health.release('starting')
  for (const [which, path] of [
    [0, '/livez'],
    [1, '/metrics'],
  ] as const) {
    for (let i = 0; i < 200; i++) {
      const socket = connect(manager.ports[which] ?? 0, '127.0.0.1')
      t.teardown(() => socket.destroy())
      await once(socket, 'connect')
    }
    t.match(await get(which, path), { status: 200 }, path)
  }
})

await t.test('caches that do not sync in time end the start, and all is closed', async (t) => {
  const { manager, clock, told } = rig()
  const started = manager.start({ signal })
  while (manager.ports.length < 2) await settle()
  clock.advance(120_000)
  await t.rejects(started, /after 120000 ms: models are not read yet/)
  t.equal(told.at(-1), 'closed')
  t.equal(clock.pending, 0)
})

await t.test('a port that is taken leaves nothing open', async (t) => {
  const other = createServer()
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  t.teardown(() => other.close())
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a listening TCP server has this kind of address
  const { port } = other.address() as AddressInfo
  const { manager, told, get } = rig({ scrapes: { host: '127.0.0.1', port } })
  await t.rejects(manager.start({ signal }), { code: 'EADDRINUSE' })
  t.equal(told.at(-1), 'closed')
  await t.rejects(get(0, '/livez'), 'the probes, which had a port, are closed too')
  t.equal(manager.ports.length, 1)
})

await t.test('a stop during the start ends it', async (t) => {
  const { manager, told } = rig()
  const stop = new AbortController()
  const started = manager.start(stop)
  stop.abort(new Error('stopped'))
  await t.rejects(started)
  t.equal(told.at(-1), 'closed')
})

await t.test('without an election it leads at once', async (t) => {
  const { manager, models, told } = rig({ election: undefined } as never)
  models.sync()
  await manager.start({ signal })
  t.same(told, ['lead'])
  await manager.close()
})

/** Nanoseconds; a tick takes 20 ms where nothing is late. */
const toTick = (lateMs: number): number => (lateMs + 20) * 1e6

await t.test('a late event loop is told', async (t) => {
  const clock = createManualClock()
  const { runtime, read } = testMetrics()
  let late = { p99Ms: 250, longestMs: 300 }
  const warned: unknown[] = []
  const told: string[] = []
  const end = watchLoop({
    clock,
    log: { ...silentLogger, warn: (_message, fields) => warned.push(fields) },
    metrics: runtime,
    ticks: {
      percentile: () => toTick(late.p99Ms),
      get max() {
        return toTick(late.longestMs)
      },
      enable: () => told.push('enable') > 0,
      reset: () => void told.push('reset'),
      disable: () => told.push('disable') > 0,
    },
  })
  clock.advance(10_000)
  late = { p99Ms: 3, longestMs: 5000 }
  clock.advance(10_000)
  late = { p99Ms: 3, longestMs: 30 }
  clock.advance(10_000)
  t.same(warned, [
    { p99Ms: 250, longestMs: 300 },
    { p99Ms: 3, longestMs: 5000 },
  ])
  t.equal(await read('event_loop_delay_p99_seconds'), 0.003)
  end()
  t.same(told, ['enable', 'reset', 'reset', 'reset', 'disable'])
  t.equal(clock.pending, 0)
  watchLoop({ clock, log: silentLogger, metrics: testMetrics().runtime })()
})
