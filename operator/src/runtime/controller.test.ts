import { createLogger, type Logger, silentLogger } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import t from 'tap'
import { settle } from '../testing/settle.ts'
import { testMetrics } from '../testing/test-metrics.ts'
import { type ControllerOptions, createController } from './controller.ts'
import type { Source } from './sources.ts'
import { TerminalError } from './terminal-error.ts'
import type { Priority } from './workqueue.ts'

/** A source that a test feeds. */
function testSource(keys: readonly string[] = []) {
  let enqueue: ((key: string, priority: Priority) => void) | undefined
  const source: Source = {
    hasSynced: true,
    keys: () => keys,
    start: (listener) => {
      enqueue = listener
      for (const key of keys) listener(key, 'low')
      return () => (enqueue = undefined)
    },
  }
  return {
    source,
    add: (key: string) => enqueue?.(key, 'high'),
    isStarted: () => enqueue !== undefined,
  }
}

function rig(o: Partial<ControllerOptions> & Pick<ControllerOptions, 'reconcile'>) {
  const clock = createManualClock()
  const { runtime, read } = testMetrics()
  const { source, add, isStarted } = testSource()
  const controller = createController({
    name: 'model',
    sources: [source],
    clock,
    random: () => 0.5,
    log: silentLogger,
    metrics: runtime,
    ...o,
  })
  const total = (result: string) =>
    read(`controller_runtime_reconcile_total{controller="model",result="${result}"}`)
  const count = (name: string) => read(`controller_runtime_${name}{controller="model"}`)
  return { controller, clock, add, isStarted, total, count, read }
}

await t.test('nothing runs before the start, then each key, and success forgets', async (t) => {
  const ran: string[] = []
  const { controller, add, total, count, read } = rig({
    reconcile: async (_context, key) => {
      ran.push(key)
      return {}
    },
  })
  add('early')
  controller.enqueue('early')
  await settle()
  t.same(ran, [])
  t.equal(await total('success'), 0)
  t.equal(await count('max_concurrent_reconciles'), 8)
  t.equal(controller.hasSynced, true)
  controller.start()
  controller.start()
  add('ns/a')
  add('ns/a')
  controller.enqueue('ns/b', 'low')
  await settle()
  t.same(ran, ['ns/a', 'ns/b'])
  t.equal(await total('success'), 2)
  t.equal(await count('reconcile_time_seconds_count'), 2)
  t.equal(await count('active_workers'), 0)
  t.equal(await read('workqueue_adds_total{name="model",controller="model"}'), 2)
  t.equal(await read('workqueue_depth{name="model",controller="model"}'), 0)
})

await t.test(
  'what is thrown comes again, later each time, and one poison key harms no other',
  async (t) => {
    const ran: string[] = []
    const { controller, clock, add, total, count, read } = rig({
      reconcile: async (_context, key) => {
        ran.push(key)
        if (key === 'poison') throw new Error('boom')
        return {}
      },
    })
    controller.start()
    add('poison')
    add('fine')
    await settle()
    t.same(ran, ['poison', 'fine'])
    clock.advance(199)
    await settle()
    t.equal(ran.length, 2)
    clock.advance(1)
    await settle()
    t.equal(ran.length, 3)
    clock.advance(200)
    await settle()
    t.equal(ran.length, 3)
    clock.advance(200)
    await settle()
    t.equal(ran.length, 4)
    t.equal(await total('error'), 3)
    t.equal(await count('reconcile_errors_total'), 3)
    t.equal(await count('terminal_reconcile_errors_total'), 0)
    t.equal(await read('workqueue_retries_total{name="model",controller="model"}'), 3)
  },
)

await t.test('a terminal error is recorded and not tried again', async (t) => {
  let runs = 0
  const lines: string[] = []
  const log = createLogger({
    level: 'info',
    name: 'x',
    destination: { write: (l) => lines.push(l) },
  })
  const { controller, clock, add, count } = rig({
    log,
    reconcile: async () => {
      runs += 1
      throw new TerminalError('refused for good')
    },
  })
  controller.start()
  add('ns/a')
  await settle()
  clock.advance(10_000_000)
  await settle()
  t.equal(runs, 1)
  t.equal(await count('terminal_reconcile_errors_total'), 1)
  t.match(JSON.parse(lines[0] ?? '{}'), {
    level: 'error',
    controller: 'model',
    key: 'ns/a',
    reconcileId: /^[0-9a-f-]{36}$/,
    message: 'reconcile failed for good',
  })
  add('ns/a')
  await settle()
  t.equal(runs, 2, 'a change is looked at')
})

await t.test('a requeue comes after its time, or with the next change', async (t) => {
  let runs = 0
  const { controller, clock, add, total } = rig({
    reconcile: async () => {
      runs += 1
      return runs < 3 ? { requeueAfterMs: 5000 } : {}
    },
  })
  controller.start()
  add('ns/a')
  await settle()
  t.equal(await total('requeue_after'), 1)
  clock.advance(4999)
  await settle()
  t.equal(runs, 1)
  clock.advance(1)
  await settle()
  t.equal(runs, 2)
  add('ns/a')
  await settle()
  t.equal(runs, 3)
  clock.advance(20_000)
  await settle()
  t.equal(runs, 3)
})

await t.test('a number of keys at once, one key never twice', async (t) => {
  const busy = new Set<string>()
  let most = 0
  const waiting: (() => void)[] = []
  const { controller, add } = rig({
    slots: 3,
    reconcile: async (_context, key) => {
      t.notOk(busy.has(key))
      busy.add(key)
      most = Math.max(most, busy.size)
      await new Promise<void>((resolve) => waiting.push(resolve))
      busy.delete(key)
      return {}
    },
  })
  controller.start()
  for (let at = 0; at < 10; at++) add(`k${at % 5}`)
  await settle()
  add('k0')
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    next()
    await settle()
  }
  t.equal(most, 3)
  t.equal(controller.inFlight, 0)
})

await t.test(
  'a reconcile that takes too long is aborted; one that hangs loses its slot, not its key',
  async (t) => {
    const ran: string[] = []
    const { controller, clock, add, count } = rig({
      slots: 1,
      timeoutMs: 1000,
      reconcile: async ({ signal }, key) => {
        ran.push(key)
        if (key === 'late' && ran.length === 1) {
          await new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason), { once: true })
          })
        }
        if (key === 'hangs') await new Promise<never>(() => {})
        return {}
      },
    })
    controller.start()
    add('late')
    await settle()
    clock.advance(1000)
    await settle()
    t.equal(await count('reconcile_timeouts_total'), 1)
    add('hangs')
    add('other')
    await settle()
    clock.advance(10_999)
    await settle()
    t.notOk(ran.includes('other'))
    clock.advance(1)
    await settle()
    t.ok(ran.includes('other'))
    add('hangs')
    await settle()
    t.equal(ran.filter((key) => key === 'hangs').length, 1)
    t.equal(controller.inFlight, 1)
  },
)

await t.test('stopping takes nothing more; what goes on ends, or is aborted', async (t) => {
  const ran: string[] = []
  const failures: string[] = []
  const log = { ...silentLogger, child: () => log, warn: (m: string) => failures.push(m) } as Logger
  const { controller, clock, add, isStarted } = rig({
    log,
    reconcile: async ({ signal }, key) => {
      ran.push(key)
      await new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      })
      return {}
    },
  })
  controller.start()
  for (let at = 0; at < 20; at++) add(`k${at}`)
  await settle()
  t.equal(ran.length, 8)
  controller.stop()
  t.equal(isStarted(), false)
  let isDrained = false
  const drained = controller.drained().then(() => (isDrained = true))
  add('late')
  await settle()
  t.equal(isDrained, false)
  controller.abort()
  await drained
  await settle()
  t.equal(ran.length, 8)
  t.same(failures, [], 'what stopping cut short is no failure')
  t.equal(clock.pending, 0)
  controller.start()
  t.equal(isStarted(), false)
})

await t.test('all own objects are looked at again once in a while', async (t) => {
  let runs = 0
  const { source } = testSource(['a', 'b'])
  const { controller, clock } = rig({
    sources: [source],
    resyncMs: 1000,
    reconcile: async () => {
      runs += 1
      return {}
    },
  })
  controller.start()
  await settle()
  t.equal(runs, 2)
  clock.advance(1000)
  clock.advance(100)
  await settle()
  t.equal(runs, 4)
  clock.advance(1000)
  await settle()
  t.equal(runs, 6)
})

await t.test('ten thousand keys with nothing to do leave the event loop to others', async (t) => {
  let runs = 0
  const { controller, add } = rig({
    reconcile: async () => {
      runs += 1
      return {}
    },
  })
  controller.start()
  for (let at = 0; at < 10_000; at++) add(`k${at}`)
  let turns = 0
  const isDone = () => runs === 10_000
  for (; !isDone(); turns++) await new Promise((resolve) => setImmediate(resolve))
  t.ok(turns >= 1000, `${turns} turns`)
})
