import { setImmediate as settled } from 'node:timers/promises'
import * as fc from 'fast-check'
import t from 'tap'
import { KeyedLimiter, type KeyedLimiterOptions } from './keyed-limiter.ts'

/** Work that a test ends; items are named by their key and a number, `a1` say. */
function rig(o: KeyedLimiterOptions) {
  const limiter = new KeyedLimiter(o)
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const run = (item: string, signal?: AbortSignal): Promise<void> =>
    limiter.run(
      item.slice(0, 1),
      () => {
        begun.push(item)
        return new Promise<void>((resolve) => ends.set(item, resolve))
      },
      signal,
    )
  const runAll = async (...items: readonly string[]): Promise<void> => {
    for (const item of items) void run(item)
    await settled()
  }
  const end = async (...items: readonly string[]): Promise<void> => {
    for (const item of items) {
      ends.get(item)?.()
      ends.delete(item)
    }
    await settled()
  }
  const now = () => begun.splice(0)
  return { limiter, run, runAll, end, now, ends }
}

await t.test('no key has more turns than its share, and all no more than the total', async (t) => {
  const { runAll, end, now } = rig({ perKey: 2, total: 3 })
  await runAll('a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1')
  t.same(now(), ['a1', 'a2', 'b1'])
  await end('a1')
  t.same(now(), ['a3'])
  await end('b1')
  t.same(now(), ['b2'], 'a has two')
  await end('a2', 'a3')
  t.same(now(), ['c1', 'a4'])
})

await t.test('those who wait are first in, first out; keys take turns', async (t) => {
  const { runAll, end, now } = rig({ total: 1 })
  await runAll('a1', 'a2', 'a3', 'b1', 'b2', 'c1')
  const order = now()
  for (let at = 0; at < 5; at++) {
    await end(order.at(-1) ?? '')
    order.push(...now())
  }
  t.same(order, ['a1', 'a2', 'b1', 'c1', 'a3', 'b2'])
})

await t.test('who waits no longer is gone at once, and takes no turn', async (t) => {
  const { limiter, run, runAll, end, now } = rig({ perKey: 1 })
  const asking = new AbortController()
  await runAll('a1')
  const waiting = run('a2', asking.signal)
  await runAll('a3')
  asking.abort(new Error('enough'))
  await t.rejects(waiting, { message: 'enough' })
  await t.rejects(run('b1', asking.signal), { message: 'enough' })
  await end('a1')
  t.same(now(), ['a1', 'a3'])
  await end('a3')
  t.equal(limiter.hasCapacity('a'), true)
})

await t.test('an abort after the turn has begun is for the work itself', async (t) => {
  const { run, end, now } = rig({ total: 1 })
  const asking = new AbortController()
  const working = run('a1', asking.signal)
  await settled()
  asking.abort(new Error('enough'))
  await end('a1')
  await working
  t.same(now(), ['a1'])
})

await t.test('work that fails ends its turn; a turn ends once', async (t) => {
  const limiter = new KeyedLimiter({ total: 1 })
  await t.rejects(
    limiter.run('a', () => Promise.reject(new Error('no'))),
    { message: 'no' },
  )
  const release = limiter.tryAcquire('a')
  t.equal(limiter.tryAcquire('b'), undefined)
  release?.()
  release?.()
  t.ok(limiter.tryAcquire('b'))
  t.equal(limiter.tryAcquire('a'), undefined)
})

await t.test(
  'in every order of events the bounds hold, and no one waits while there is capacity',
  async () => {
    const event = fc.record({ key: fc.constantFrom('a', 'b', 'c'), end: fc.boolean() })
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 60 }), async (events) => {
        const limiter = new KeyedLimiter({ total: 4, perKey: 2 })
        const held: { readonly key: string; readonly release: () => void }[] = []
        const waits = new Map<string, number>()
        const wait = (key: string, by: number) => waits.set(key, (waits.get(key) ?? 0) + by)
        for (const { key, end } of events) {
          if (end) held.splice(held.findIndex((one) => one.key === key) >>> 0, 1)[0]?.release()
          else {
            wait(key, 1)
            void limiter.acquire(key).then((release) => {
              wait(key, -1)
              return held.push({ key, release })
            })
          }
          await settled()
          const of = (wanted: string) => held.filter((one) => one.key === wanted).length
          if (held.length > 4 || ['a', 'b', 'c'].some((one) => of(one) > 2))
            throw new Error('bound')
          for (const [one, waiting] of waits) {
            if (waiting > 0 && limiter.hasCapacity(one))
              throw new Error(`${one} waits beside capacity`)
          }
        }
      }),
      { numRuns: 200 },
    )
  },
)
