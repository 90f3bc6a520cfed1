import { createManualClock, type ManualClock } from '@tutti/chassis/testing'
import * as fc from 'fast-check'
import t from 'tap'
import { type Priority, type TakenKey, Workqueue, type WorkqueueOptions } from './workqueue.ts'

/** Without jitter: 0.5 is its middle. */
const rig = (o: Pick<WorkqueueOptions, 'groupOf' | 'limits'> = {}) => {
  const clock = createManualClock()
  const queue = new Workqueue({ clock, random: () => 0.5, ...o })
  return { clock, queue }
}

await t.test('a key is in it once, and first in is first out', async (t) => {
  const { queue } = rig()
  for (const key of ['a', 'b', 'a', 'c', 'a']) queue.add(key)
  t.equal(queue.depth, 3)
  t.same([queue.take()?.key, queue.take()?.key, queue.take()?.key], ['a', 'b', 'c'])
  t.equal(queue.take(), undefined)
})

await t.test('a key that is added while it is processed comes once more, after done', async (t) => {
  const { queue } = rig()
  queue.add('a')
  queue.take()
  queue.add('a')
  queue.add('a')
  t.equal(queue.take(), undefined)
  queue.done('a')
  t.equal(queue.take()?.key, 'a')
  queue.done('a')
  t.equal(queue.take(), undefined)
  queue.done('never taken')
})

await t.test('what changed goes before what is merely looked at again', async (t) => {
  const { queue } = rig()
  for (const key of ['a', 'b', 'c']) queue.add(key, { priority: 'low' })
  queue.add('c')
  queue.add('d')
  const taken = [queue.take(), queue.take(), queue.take(), queue.take(), queue.take()]
  t.same(taken.slice(0, 4), [
    { key: 'c', priority: 'high' },
    { key: 'd', priority: 'high' },
    { key: 'a', priority: 'low' },
    { key: 'b', priority: 'low' },
  ])
  t.equal(taken[4], undefined)
})

await t.test('of several delays the earliest holds, with the higher priority', async (t) => {
  const { clock, queue } = rig()
  queue.addAfter('a', 100, { priority: 'low' })
  queue.addAfter('a', 50, { priority: 'high' })
  queue.addAfter('a', 500, { priority: 'low' })
  t.equal(queue.waiting, 1)
  clock.advance(49)
  t.equal(queue.depth, 0)
  clock.advance(1)
  t.same(queue.take(), { key: 'a', priority: 'high' })
  queue.done('a')
  clock.advance(1000)
  t.equal(queue.take(), undefined)
})

await t.test('an add ends the wait, and a ready key does not wait again', async (t) => {
  const { clock, queue } = rig()
  queue.addAfter('a', 100)
  queue.add('a', { priority: 'low' })
  t.equal(queue.waiting, 0)
  t.same(queue.take(), { key: 'a', priority: 'high' })
  queue.done('a')
  queue.add('b', { priority: 'low' })
  queue.addAfter('b', 100)
  t.equal(queue.waiting, 0)
  t.same(queue.take(), { key: 'b', priority: 'high' })
  t.equal(clock.pending, 0)
  t.equal(queue.depth, 0)
})

await t.test('failures double the delay up to the longest, until they are forgotten', async (t) => {
  const { clock, queue } = rig()
  const delays: number[] = []
  for (let at = 0; at < 13; at++) {
    queue.addRateLimited('a')
    const since = clock.now()
    while (queue.depth === 0) clock.advance(100)
    delays.push(clock.now() - since)
    queue.take()
    queue.done('a')
  }
  t.same(delays.slice(0, 4), [200, 400, 800, 1600])
  t.same(delays.slice(-2), [300_000, 300_000])
  t.equal(queue.failures('a'), 13)
  queue.forget('a')
  t.equal(queue.failures('a'), 0)
})

await t.test('delays spread by a fifth to either side', async (t) => {
  for (const [random, wantMs] of [
    [0, 160],
    [0.999999, 240],
  ] as const) {
    const clock = createManualClock()
    const queue = new Workqueue({ clock, random: () => random })
    queue.addRateLimited('a')
    clock.advance(wantMs - 1)
    t.equal(queue.depth, 0)
    clock.advance(1)
    t.equal(queue.depth, 1)
  }
})

await t.test('after the shutdown only what is being processed is left', async (t) => {
  const { clock, queue } = rig()
  queue.add('taken')
  queue.take()
  queue.add('ready')
  queue.addAfter('waiting', 100)
  let isDrained = false
  queue.shutDown()
  const drained = queue.drained().then(() => (isDrained = true))
  queue.add('late')
  queue.addAfter('late', 10)
  clock.advance(1000)
  t.equal(queue.take(), undefined)
  t.same([queue.depth, queue.waiting, queue.processing, clock.pending], [0, 0, 1, 0])
  await Promise.resolve()
  t.equal(isDrained, false)
  queue.done('taken')
  await drained
  await queue.drained()
  t.equal(queue.take(), undefined)
})

await t.test('it tells how long keys waited and how long they took', async (t) => {
  const clock = createManualClock()
  const told: string[] = []
  const queue = new Workqueue({
    clock,
    observer: {
      added: () => told.push('added'),
      taken: (ms) => told.push(`taken ${ms}`),
      done: (ms) => told.push(`done ${ms}`),
      retried: () => told.push('retried'),
    },
  })
  queue.add('a')
  queue.add('a')
  clock.advance(5)
  queue.take()
  clock.advance(7)
  t.same(queue.processingMs(), [7])
  queue.addRateLimited('a')
  queue.done('a')
  t.same(told, ['added', 'taken 5', 'retried', 'done 7'])
})

type Command =
  | { readonly kind: 'add' | 'rate' | 'forget'; readonly key: string; readonly priority: Priority }
  | {
      readonly kind: 'after'
      readonly key: string
      readonly ms: number
      readonly priority: Priority
    }
  | { readonly kind: 'take' }
  | { readonly kind: 'done'; readonly which: number }
  | { readonly kind: 'advance'; readonly ms: number }

const key = fc.constantFrom('a', 'b', 'c', 'd')
const priority = fc.constantFrom<Priority>('high', 'low')
const ms = fc.integer({ min: 0, max: 1000 })
const command: fc.Arbitrary<Command> = fc.oneof(
  fc.record({ kind: fc.constantFrom('add', 'rate', 'forget'), key, priority }),
  fc.record({ kind: fc.constant('after' as const), key, ms, priority }),
  fc.record({ kind: fc.constant('take' as const) }),
  fc.record({ kind: fc.constant('done' as const), which: fc.nat(3) }),
  fc.record({ kind: fc.constant('advance' as const), ms }),
)

/** The same queue in the plainest words: what is wanted now, what is wanted later, who is busy. */
class Model {
  readonly now = new Map<string, Priority>()
  readonly groupOf: ((key: string) => string) | undefined
  readonly later = new Map<string, { at: number; priority: Priority }>()
  readonly busy = new Set<string>()
  readonly failures = new Map<string, number>()
  taken = 0

  /** @param groupOf - of each group one key is processed at a time. */
  constructor(groupOf: ((key: string) => string) | undefined) {
    this.groupOf = groupOf
  }

  add(key: string, priority: Priority): void {
    const high = [priority, this.now.get(key), this.later.get(key)?.priority].includes('high')
    this.later.delete(key)
    this.now.set(key, high ? 'high' : 'low')
  }

  after(added: { key: string; priority: Priority }, at: number, now: number): void {
    const { key, priority } = added
    if (at <= now || this.now.has(key)) {
      this.add(key, priority)
      return
    }
    const known = this.later.get(key)
    const high = priority === 'high' || known?.priority === 'high'
    this.later.set(key, { at: Math.min(at, known?.at ?? at), priority: high ? 'high' : 'low' })
  }

  advance(now: number): void {
    for (const [key, { at, priority }] of this.later) if (at <= now) this.add(key, priority)
  }

  /** Checks that the queue gave what it should give. */
  take(taken: TakenKey | undefined): void {
    const ready = this.ready.filter((key) => this.hasCapacity(key))
    if (taken === undefined) {
      if (ready.length > 0) throw new Error(`${ready.join()} ready, none taken`)
      return
    }
    if (!ready.includes(taken.key)) throw new Error(`${taken.key} taken, not ready`)
    if (this.now.get(taken.key) !== taken.priority) throw new Error('another priority')
    const isHighReady = ready.some((key) => this.now.get(key) === 'high')
    if (taken.priority === 'low' && isHighReady) throw new Error('low before high')
    this.now.delete(taken.key)
    this.busy.add(taken.key)
    this.taken += 1
  }

  hasCapacity(key: string): boolean {
    const { groupOf } = this
    if (groupOf === undefined) return true
    return [...this.busy].every((other) => groupOf(other) !== groupOf(key))
  }

  get ready(): readonly string[] {
    return [...this.now.keys()].filter((key) => !this.busy.has(key))
  }
}

/** One command, to the queue and to the model. @throws Error if they part. */
function step(c: Command, queue: Workqueue, model: Model, clock: ManualClock): void {
  switch (c.kind) {
    case 'add':
      queue.add(c.key, c)
      model.add(c.key, c.priority)
      break
    case 'after':
      queue.addAfter(c.key, c.ms, c)
      model.after(c, clock.now() + c.ms, clock.now())
      break
    case 'rate': {
      const before = model.failures.get(c.key) ?? 0
      model.failures.set(c.key, before + 1)
      queue.addRateLimited(c.key, c)
      model.after(c, clock.now() + Math.min(300_000, 200 * 2 ** before), clock.now())
      break
    }
    case 'forget':
      queue.forget(c.key)
      model.failures.delete(c.key)
      break
    case 'take':
      model.take(queue.take())
      break
    case 'done': {
      const key = [...model.busy][c.which] ?? 'none'
      queue.done(key)
      model.busy.delete(key)
      break
    }
    case 'advance':
      clock.advance(c.ms)
      model.advance(clock.now())
  }
}

/** Brings the queue to its end. @throws Error if a key is lost, or comes twice. */
function finish(queue: Workqueue, model: Model, clock: ManualClock): void {
  const wanted = new Set([...model.now.keys(), ...model.later.keys()])
  for (const key of model.busy) queue.done(key)
  clock.advance(10_000_000)
  for (let taken = queue.take(); taken !== undefined; taken = queue.take()) {
    queue.done(taken.key)
    if (!wanted.delete(taken.key)) throw new Error(`${taken.key} was not wanted, or came twice`)
  }
  if (wanted.size > 0) throw new Error(`${[...wanted].join()} lost`)
}

const twoGroups = (key: string): string => (key < 'c' ? 'one' : 'other')

for (const groupOf of [undefined, twoGroups]) {
  const name = groupOf === undefined ? 'without limits' : 'in groups'
  await t.test(`it keeps its promises in every order of events, ${name}`, async (t) => {
    let takes = 0
    fc.assert(
      fc.property(fc.array(command, { maxLength: 200, size: 'max' }), (commands) => {
        const { clock, queue } = rig(groupOf && { groupOf, limits: { perKey: 1 } })
        const model = new Model(groupOf)
        let woken = 0
        queue.onReady(() => (woken += 1))
        for (const c of commands) {
          const before = { woken, depth: queue.depth }
          step(c, queue, model, clock)
          if (queue.depth !== model.ready.length) throw new Error(`depth after ${c.kind}`)
          if (queue.waiting !== model.later.size) throw new Error(`waiting after ${c.kind}`)
          if (queue.processing !== model.busy.size) throw new Error(`processing after ${c.kind}`)
          if (queue.depth > before.depth && woken === before.woken)
            throw new Error('no listener woken')
        }
        takes += model.taken
        finish(queue, model, clock)
      }),
      { numRuns: 500 },
    )
    t.ok(takes > 1000, `${takes} keys were taken`)
  })
}

await t.test('groups take turns, and within a group the first is first', async (t) => {
  const { queue } = rig({ groupOf: (key) => key.slice(0, 1) })
  for (const key of ['a1', 'a2', 'a3', 'b1', 'b2', 'c1']) queue.add(key)
  const taken = Array.from({ length: 6 }, () => queue.take()?.key)
  t.same(taken, ['a1', 'b1', 'c1', 'a2', 'b2', 'a3'])
})

await t.test(
  'a group at its limit is passed over, until one of its keys is done or released',
  async (t) => {
    const { queue } = rig({ groupOf: (key) => key.slice(0, 1), limits: { perKey: 1 } })
    let woken = 0
    queue.onReady(() => (woken += 1))
    for (const key of ['a1', 'a2', 'b1']) queue.add(key)
    t.same([queue.take()?.key, queue.take()?.key, queue.take()], ['a1', 'b1', undefined])
    queue.add('a3', { priority: 'low' })
    queue.add('a4')
    t.equal(queue.take(), undefined)
    t.equal(queue.depth, 3)
    const before = woken
    queue.done('a1')
    t.equal(woken, before + 1)
    t.equal(queue.take()?.key, 'a2')
    // It hangs.
    queue.release('a2')
    t.equal(queue.take()?.key, 'a4', 'what changed goes first')
    queue.done('a2')
    t.equal(queue.take(), undefined)
    queue.done('a4')
    t.equal(queue.take()?.key, 'a3')
  },
)

await t.test('a key that is raised has one place alone', async (t) => {
  const { queue } = rig({ groupOf: () => 'one', limits: { perKey: 1 } })
  queue.add('a')
  for (const key of ['waits', 'last']) queue.add(key, { priority: 'low' })
  t.equal(queue.take()?.key, 'a')
  queue.add('last')
  queue.done('a')
  t.same(queue.take(), { key: 'last', priority: 'high' })
  queue.done('last')
  t.same(queue.take(), { key: 'waits', priority: 'low' })
  queue.done('waits')
  t.equal(queue.take(), undefined)
  t.equal(queue.depth, 0)
})

await t.test('a bound for all holds beside that of a group', async (t) => {
  const limits = { total: 3, perKey: 2 }
  const { queue } = rig({ groupOf: (key) => key.slice(0, 1), limits })
  for (const key of ['a1', 'a2', 'a3', 'b1', 'b2', 'c1']) queue.add(key)
  const taken = [queue.take()?.key, queue.take()?.key, queue.take()?.key, queue.take()?.key]
  t.same(taken, ['a1', 'b1', 'c1', undefined])
  queue.done('c1')
  t.equal(queue.take()?.key, 'a2')
  queue.done('b1')
  t.equal(queue.take()?.key, 'b2', 'a has two')
})

await t.test('a hundred thousand keys', async (t) => {
  const { queue } = rig()
  for (let at = 0; at < 300_000; at++) queue.add(`ns/${at % 100_000}`)
  let taken = 0
  for (let next = queue.take(); next !== undefined; next = queue.take()) {
    queue.done(next.key)
    taken += 1
  }
  t.equal(taken, 100_000)
})
