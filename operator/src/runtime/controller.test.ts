import { createLogger, type Logger, silentLogger } from '@tutti/chassis'
import { KubeError } from '@tutti/kube'
import t from 'tap'
import { controllerRig, testSource } from '../testing/controller-rig.ts'
import { settle } from '../testing/settle.ts'
import { TerminalError } from './terminal-error.ts'

await t.test('nothing runs before the start, then each key, and success forgets', async (t) => {
  const ran: string[] = []
  const { controller, add, total, count, read } = controllerRig({
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
    const { controller, clock, add, total, count, read } = controllerRig({
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

await t.test('what a namespace refuses that is being deleted is no warning', async (t) => {
  const lines: string[] = []
  const log = createLogger({
    name: 'test',
    level: 'info',
    destination: { write: (line) => lines.push(line) },
  })
  const { controller, add, total } = controllerRig({
    log,
    reconcile: async () => {
      throw new KubeError({
        status: 403,
        reason: 'Forbidden',
        message: 'unable to create new content in namespace ns because it is being terminated',
        causes: [{ reason: 'NamespaceTerminating' }],
      })
    },
  })
  controller.start()
  add('ns/a')
  await settle()
  t.equal(await total('error'), 1)
  t.same(lines, [])
})

await t.test('a terminal error is recorded and not tried again', async (t) => {
  let runs = 0
  const lines: string[] = []
  const log = createLogger({
    level: 'info',
    name: 'x',
    destination: { write: (l) => lines.push(l) },
  })
  const { controller, clock, add, count } = controllerRig({
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
  const { controller, clock, add, total } = controllerRig({
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

await t.test('stopping takes nothing more; what goes on ends, or is aborted', async (t) => {
  const ran: string[] = []
  const failures: string[] = []
  const log = { ...silentLogger, child: () => log, warn: (m: string) => failures.push(m) } as Logger
  const { controller, clock, add, isStarted } = controllerRig({
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
  const { controller, clock } = controllerRig({
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
  const { controller, add } = controllerRig({
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
