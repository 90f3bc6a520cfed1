import * as fc from 'fast-check'
import t from 'tap'
import {
  addOffer as add,
  type QueueCommand,
  QueueModel,
  type RuleChoice,
  queueRules as rules,
} from '../testing/queue-model.ts'
import type { LevelRules } from './queue-rules.ts'
import { RequestQueue } from './request-queue.ts'

function show(next: readonly string[] | number): string {
  if (typeof next !== 'number') return next.join('')
  return next === Number.POSITIVE_INFINITY ? 'empty' : `wait ${next}`
}

/** `aab` style: one letter per item of the batch dimension. */
function fill(queue: RequestQueue<string>, sizes: readonly number[], key = ''): void {
  sizes.forEach((size, i) => add(queue, { item: String.fromCharCode(97 + i), size, key }))
}

await t.test('the batch is the largest preferred size, else what is there or a wait', async (t) => {
  const cases: readonly (readonly [string, RuleChoice, readonly number[], number, string])[] = [
    ['nothing waits', {}, [], 0, 'empty'],
    ['delay 0 takes what is there', {}, [1, 1, 1], 0, 'abc'],
    ['delay 0 takes the preferred size first', { preferred: [2] }, [1, 1, 1], 0, 'ab'],
    ['the largest preferred size wins', { preferred: [2, 4] }, [1, 1, 1, 1, 1], 0, 'abcd'],
    ['a preferred size does not wait', { preferred: [2], delayMs: 5 }, [1, 1], 0, 'ab'],
    ['below a preferred size it waits', { preferred: [4], delayMs: 5 }, [1, 1], 0, 'wait 5'],
    ['the delay of the oldest ends it', { preferred: [4], delayMs: 5 }, [1, 1], 5, 'ab'],
    ['after the delay all that fits goes', { preferred: [2], delayMs: 5 }, [1, 1, 1], 5, 'abc'],
    ['the maximum bounds the batch', { max: 4, preferred: [3] }, [2, 2, 1], 9, 'a'],
    [
      'after the delay up to the maximum',
      { max: 4, preferred: [3], delayMs: 1 },
      [2, 2, 1],
      9,
      'ab',
    ],
    ['a client batch stays whole', { max: 4 }, [3, 3], 0, 'a'],
    [
      'a client batch above the preferred size goes alone',
      { preferred: [2], delayMs: 9 },
      [5],
      0,
      'a',
    ],
    [
      'passing every preferred size sends what is there',
      { preferred: [4], delayMs: 9 },
      [2, 3],
      0,
      'a',
    ],
    ['a model without batch dimension runs one by one', { max: 1, preferred: [] }, [0, 0], 0, 'a'],
    ['without a batcher a client batch goes alone too', { max: 1, preferred: [] }, [3, 1], 0, 'a'],
  ]
  for (const [name, choice, sizes, now, want] of cases) {
    const queue = new RequestQueue<string>(rules(choice))
    fill(queue, sizes)
    t.equal(show(queue.next(now)), want, name)
  }
})

await t.test(
  'requests that do not fit together are not batched, and the first need not wait',
  async (t) => {
    const queue = new RequestQueue<string>(rules({ delayMs: 5 }))
    add(queue, { item: 'a', key: '4' })
    t.equal(show(queue.next(0)), 'wait 5')
    add(queue, { item: 'b', key: '5' })
    add(queue, { item: 'c', key: '4' })
    t.equal(show(queue.next(0)), 'a')
    t.equal(show(queue.next(0)), 'b', 'order is kept, so c does not overtake b')
    t.equal(show(queue.next(0)), 'wait 5')
  },
)

await t.test('higher levels go first and may share a batch with lower ones', async (t) => {
  const queue = new RequestQueue<string>(rules({ levels: 3, defaultLevel: 2 }))
  add(queue, { item: 'c', priority: 3 })
  add(queue, { item: 'b', priority: 0 })
  add(queue, { item: 'B', priority: 9 })
  add(queue, { item: 'a', priority: 1 })
  t.equal(show(queue.next(0)), 'abBc')
})

await t.test('a request of a higher level joins the batch that waits', async (t) => {
  const queue = new RequestQueue<string>(rules({ levels: 2, defaultLevel: 2, delayMs: 5 }))
  add(queue, { item: 'b' })
  t.equal(show(queue.next(0)), 'wait 5')
  add(queue, { item: 'a', priority: 1, at: 1 })
  t.equal(show(queue.next(2)), 'wait 5')
  t.equal(show(queue.next(5)), 'ab')
})

await t.test('max_queue_size refuses per level with the text of Triton', async (t) => {
  const queue = new RequestQueue<string>(
    rules({
      levels: 2,
      defaultLevel: 2,
      policy: { maxQueueSize: 1 },
      levelPolicies: { 1: { maxQueueSize: 2 } },
    }),
  )
  add(queue, { item: 'x' })
  add(queue, { item: 'a', priority: 1 })
  add(queue, { item: 'b', priority: 1 })
  for (const priority of [0, 1]) {
    const error = t.throws(() => add(queue, { item: 'y', priority }))
    t.match(error, {
      reason: 'QUEUE_FULL',
      code: 'UNAVAILABLE',
      message: '[request id: <id_unknown>] Exceeds maximum queue size',
    })
  }
  t.equal(queue.length, 3)
})

await t.test('queues without a bound of their own share the bound of the server', async (t) => {
  const queue = new RequestQueue<string>(
    rules({ levels: 3, defaultLevel: 2, maxQueued: 2, levelPolicies: { 1: { maxQueueSize: 1 } } }),
  )
  add(queue, { item: 'own bound', priority: 1 })
  const first = add(queue, { item: 'a', priority: 2 })
  add(queue, { item: 'b', priority: 3 })
  t.match(
    t.throws(() => add(queue, { item: 'c', priority: 3 })),
    {
      reason: 'OVERLOADED',
      code: 'RESOURCE_EXHAUSTED',
    },
  )
  queue.remove(first)
  add(queue, { item: 'c', priority: 3 })
  t.equal(queue.length, 3)
})

await t.test('REJECT takes expired requests out', async (t) => {
  const queue = new RequestQueue<string>(rules({ policy: { defaultTimeoutUs: 2000 } }))
  fill(queue, [1, 1])
  add(queue, { item: 'late', at: 1 })
  t.equal(queue.nextExpiry, 2)
  t.same(queue.expire(1.9), [])
  t.same(
    queue.expire(2).map(([item, error]) => [item, error.reason]),
    [
      ['a', 'QUEUE_TIMEOUT'],
      ['b', 'QUEUE_TIMEOUT'],
    ],
  )
  t.equal(queue.nextExpiry, 3)
  t.equal(show(queue.next(2)), 'late')
})

await t.test('DELAY moves expired requests behind all others of their level', async (t) => {
  const policy = { timeoutAction: 'DELAY', defaultTimeoutUs: 2000 } as const
  const queue = new RequestQueue<string>(rules({ max: 1, policy }))
  fill(queue, [1, 1])
  t.same(queue.expire(2), [])
  add(queue, { item: 'c', at: 2 })
  t.equal(queue.nextExpiry, 4, 'a delayed request does not expire again')
  t.same(
    [1, 2, 3].map(() => show(queue.next(2))),
    ['c', 'a', 'b'],
  )
})

await t.test('a request may shorten its timeout where the policy allows it', async (t) => {
  const cases: readonly (readonly [string, Partial<LevelRules>, bigint, number])[] = [
    ['not allowed', { defaultTimeoutUs: 5000 }, 1000n, 5],
    ['shorter', { defaultTimeoutUs: 5000, allowTimeoutOverride: true }, 1000n, 1],
    ['longer', { defaultTimeoutUs: 5000, allowTimeoutOverride: true }, 9000n, 5],
    [
      'negative, which is 2^64 - 1',
      { defaultTimeoutUs: 5000, allowTimeoutOverride: true },
      2n ** 64n - 1n,
      5,
    ],
    ['none', { defaultTimeoutUs: 5000, allowTimeoutOverride: true }, 0n, 5],
    ['no default to shorten', { allowTimeoutOverride: true }, 1000n, Number.POSITIVE_INFINITY],
  ]
  for (const [name, policy, timeoutUs, want] of cases) {
    const queue = new RequestQueue<string>(rules({ policy }))
    queue.add('a', { batchSize: 1, inputs: [], context: { id: '', priority: 0n, timeoutUs } }, 0)
    t.equal(queue.nextExpiry, want, name)
  }
})

await t.test('a request that left is gone for good', async (t) => {
  const queue = new RequestQueue<string>(rules({ policy: { defaultTimeoutUs: 1000 } }))
  const entry = add(queue, { item: 'a' })
  t.equal(queue.remove(entry), true)
  t.equal(queue.remove(entry), false)
  t.equal(queue.nextExpiry, Number.POSITIVE_INFINITY)
  t.equal(show(queue.next(0)), 'empty')
})

await t.test('clear empties all levels in order', async (t) => {
  const queue = new RequestQueue<string>(rules({ levels: 2, defaultLevel: 1 }))
  add(queue, { item: 'b', priority: 2 })
  add(queue, { item: 'a', priority: 1 })
  t.same(queue.clear(), ['a', 'b'])
  t.same(queue.clear(), [])
  t.equal(queue.length, 0)
})

const command: fc.Arbitrary<QueueCommand> = fc.oneof(
  fc.record({
    do: fc.constant('add' as const),
    size: fc.integer({ min: 0, max: 5 }),
    key: fc.constantFrom('', '4', '5'),
    priority: fc.integer({ min: 0, max: 4 }),
    timeoutUs: fc.integer({ min: 0, max: 4000 }),
  }),
  fc.record({ do: fc.constant('remove' as const), index: fc.nat(20) }),
  fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 0, max: 3 }) }),
  fc.record({ do: fc.constant('take' as const) }),
)

const choice = fc.record({
  max: fc.integer({ min: 5, max: 8 }),
  preferred: fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 3 }),
  delayMs: fc.constantFrom(0, 1, 4),
  levels: fc.constant(3),
  defaultLevel: fc.constantFrom(1, 2, 3),
  policy: fc.record({
    timeoutAction: fc.constantFrom('REJECT' as const, 'DELAY' as const),
    defaultTimeoutUs: fc.constantFrom(0, 2000),
    allowTimeoutOverride: fc.boolean(),
    maxQueueSize: fc.constantFrom(0, 6),
  }),
  maxQueued: fc.constantFrom(8, 1000),
})

await t.test(
  'whatever happens, no request is lost, doubled, reordered or put in an illegal batch',
  async () => {
    fc.assert(
      fc.property(choice, fc.array(command, { maxLength: 60 }), (o, commands) => {
        const model = new QueueModel(rules(o))
        for (const next of commands) model.run(next)
        model.drain()
      }),
      { numRuns: 400 },
    )
  },
)
