import { ok } from 'node:assert/strict'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import * as fc from 'fast-check'
import t from 'tap'
import { JsonQueue } from './json-queue.ts'

const MEBIBYTE = 2 ** 20
const { signal: never } = new AbortController()

/** A queue of work that ends when it is told to, and the order in which it began. */
function scene() {
  const queue = new JsonQueue()
  const begun: string[] = []
  const running: (() => void)[] = []
  const add = (name: string, connection: string, bytes: number, signal = never): void => {
    void queue.run({ connection, bytes, signal }, async () => {
      begun.push(name)
      await new Promise<void>((resolve) => running.push(resolve))
    })
  }
  /** Ends what runs, and lets the next begin. */
  const endOne = async (): Promise<void> => {
    running.shift()?.()
    for (let i = 0; i < 5; i += 1) await new Promise((resolve) => setImmediate(resolve))
  }
  return { begun, running, add, endOne }
}

await t.test(
  'small bodies come before large ones that wait, which wait not for ever',
  async (t) => {
    const { begun, add, endOne } = scene()
    for (let i = 0; i < 3; i += 1) add(`large ${i}`, `a${i}`, 60 * MEBIBYTE)
    add('small', 'b', MEBIBYTE)
    await endOne()
    await endOne()
    t.same(begun, ['large 0', 'small', 'large 1'])
    // Each comes when another one has been parsed.
    for (let i = 0; !begun.includes('large 2') && i < 600; i += 1) {
      add(`flood ${i}`, `c${i}`, 4 * MEBIBYTE)
      await endOne()
    }
    const passed = begun.filter((name) => name.startsWith('flood')).length
    t.ok(passed > 50 && passed < 130, `${passed} have passed`)
  },
)

await t.test('one connection keeps others waiting for one body', async (t) => {
  const { begun, add, endOne } = scene()
  for (let i = 0; i < 100; i += 1) add(`flood ${i}`, 'a', MEBIBYTE)
  add('other', 'b', MEBIBYTE)
  for (let i = 0; i < 3; i += 1) await endOne()
  t.same(begun.slice(0, 3), ['flood 0', 'other', 'flood 1'])
})

await t.test('what fails lets the next begin', async (t) => {
  const queue = new JsonQueue()
  const turn = { connection: 'a', bytes: 1, signal: never }
  const failed = queue.run(turn, async () => {
    throw new Error('no')
  })
  const next = queue.run(turn, async () => 7)
  await t.rejects(failed, { message: 'no' })
  t.equal(await next, 7)
})

await t.test('a body whose caller leaves while it waits is not kept', async (t) => {
  const { begun, add, endOne } = scene()
  const queue = new JsonQueue()
  const first = Promise.withResolvers<void>()
  void queue.run({ connection: 'a', bytes: 1, signal: never }, () => first.promise)
  const bodies = new Set<WeakRef<object>>()
  const keep = (connection: string): AbortController => {
    const caller = new AbortController()
    const held = { bytes: Buffer.alloc(1) }
    bodies.add(new WeakRef(held))
    void queue.run({ connection, bytes: 1, signal: caller.signal }, async () => held)
    return caller
  }
  for (const connection of ['a', 'b', 'b', 'c']) keep(connection).abort()
  t.ok(await isFreed(bodies), 'nothing holds them')
  first.resolve()

  const [one, other] = [new AbortController(), new AbortController()]
  add('runs', 'a', MEBIBYTE)
  add('left', 'b', MEBIBYTE, one.signal)
  add('next', 'b', MEBIBYTE)
  add('also left', 'b', MEBIBYTE, other.signal)
  one.abort()
  other.abort()
  for (let i = 0; i < 3; i += 1) await endOne()
  t.same(begun, ['runs', 'next'])
})

/** Collects garbage until nothing is left, or that changes nothing. */
async function isFreed(held: ReadonlySet<WeakRef<object>>): Promise<boolean> {
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  for (let i = 0; i < 10; i += 1) {
    // An object that a turn has seen stays until its end.
    await new Promise((resolve) => setImmediate(resolve))
    if (typeof collect === 'function') collect()
    if ([...held].every((one) => one.deref() === undefined)) return true
  }
  return false
}

const body = fc.record({
  connection: fc.constantFrom('a', 'b', 'c', 'd'),
  bytes: fc.integer({ min: 1, max: 64 * MEBIBYTE }),
})

await t.test(
  'whatever comes, all are parsed, one at a time, and each connection in its order',
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(body, { maxLength: 30 }), async (bodies) => {
        const { begun, running, add, endOne } = scene()
        for (const [i, { connection, bytes }] of bodies.entries()) {
          add(`${connection} ${i}`, connection, bytes)
          ok(running.length <= 1)
        }
        for (let i = 0; i < bodies.length; i += 1) await endOne()
        ok(begun.length === bodies.length)
        for (const connection of 'abcd') {
          const own = begun.filter((name) => name.startsWith(connection))
          ok(
            own.every((name, i) => i === 0 || Number(own[i - 1]?.slice(2)) < Number(name.slice(2))),
          )
        }
      }),
      { numRuns: 100 },
    )
  },
)
