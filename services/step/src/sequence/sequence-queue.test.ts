import { ServeError } from '@tutti/errors'
import * as fc from 'fast-check'
import t from 'tap'
import { NaiveSequences } from '../testing/naive-sequences.ts'
import { sequenceConfig, sequenceRequest } from '../testing/sequence-builders.ts'
import type { SequenceEntry } from './sequence.ts'
import { SequenceQueue } from './sequence-queue.ts'
import { compileSequenceRules, type SequenceRules } from './sequence-rules.ts'

type Command =
  | {
      readonly do: 'add'
      readonly id: number
      readonly start: boolean
      readonly end: boolean
      readonly width: number
      readonly timeoutUs: number
    }
  | { readonly do: 'cancel'; readonly index: number }
  | { readonly do: 'pass'; readonly ms: number }
  | { readonly do: 'lose'; readonly instance: number }
  | { readonly do: 'finish'; readonly instance: number; readonly again: readonly boolean[] }

const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('add' as const),
      id: fc.integer({ min: 1, max: 6 }),
      start: fc.constantFrom(true, true, false),
      end: fc.constantFrom(false, false, true),
      width: fc.constantFrom(2, 2, 3),
      timeoutUs: fc.constantFrom(0, 0, 2000),
    }),
  },
  fc.record({ do: fc.constant('cancel' as const), index: fc.nat(40) }),
  fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 0, max: 3 }) }),
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('finish' as const),
      instance: fc.nat(2),
      again: fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }),
    }),
  },
  fc.record({ do: fc.constant('lose' as const), instance: fc.nat(2) }),
)

const choice = fc.record({
  isDirect: fc.boolean(),
  isIterative: fc.boolean(),
  instances: fc.integer({ min: 1, max: 3 }),
  slots: fc.integer({ min: 1, max: 3 }),
  delayMs: fc.constantFrom(0, 0, 2),
  maxQueuedRequests: fc.constantFrom(4, 1000),
})

function toRules(o: typeof choice extends fc.Arbitrary<infer C> ? C : never): SequenceRules {
  const max_queue_delay_microseconds = o.delayMs * 1000
  const config = o.isDirect
    ? { direct: { max_queue_delay_microseconds, minimum_slot_utilization: 1 } }
    : {
        oldest: {
          max_candidate_sequences: o.slots,
          preferred_batch_size: [o.slots],
          max_queue_delay_microseconds: 0,
          preserve_ordering: false,
        },
      }
  return compileSequenceRules(
    sequenceConfig(
      {
        ...config,
        iterative_sequence: o.isIterative,
        max_sequence_idle_microseconds: 4000,
      },
      { max_batch_size: o.slots },
    ),
    o,
  )
}

/** Drives the queue and the naive one, and compares what they do. */
class Pair {
  readonly #queue: SequenceQueue<string>
  readonly #naive: NaiveSequences
  readonly #entries = new Map<string, SequenceEntry<string>>()
  readonly #rules: SequenceRules
  readonly #instances: number
  #now = 0
  #count = 0

  constructor(rules: SequenceRules) {
    this.#rules = rules
    this.#queue = new SequenceQueue(rules)
    this.#naive = new NaiveSequences(rules)
    this.#instances = rules.instances
  }

  run(command: Command): void {
    if (command.do === 'add') this.#add(command)
    else if (command.do === 'cancel') this.#cancel(command.index)
    else if (command.do === 'pass') this.#now += command.ms
    else this.#onInstance(command, command.instance % this.#instances)
    this.#look()
  }

  /** Finishes what runs, and lets time pass, until nothing waits. */
  drain(): void {
    for (let round = 0; this.#queue.length > 0; round += 1) {
      if (round > 500) throw new Error('starved')
      this.#finishAll()
      this.run({ do: 'pass', ms: 1 })
    }
    this.#finishAll()
    this.run({ do: 'pass', ms: 4 })
    const { active, backlog } = this.#queue.sequences
    equal([active, backlog, this.#queue.nextExpiry], [0, 0, Number.POSITIVE_INFINITY])
  }

  #finishAll(): void {
    for (let i = 0; i < this.#instances; i += 1) this.run({ do: 'finish', instance: i, again: [] })
  }

  #add(o: Command & { readonly do: 'add' }): void {
    const item = `r${this.#count++}`
    const request = sequenceRequest(
      { id: BigInt(o.id), start: o.start, end: o.end, timeoutUs: BigInt(o.timeoutUs) },
      o.width,
    )
    const isTaken = this.#naive.add({ item, request, key: String(o.width), at: this.#now })
    let entry: SequenceEntry<string> | undefined
    try {
      entry = this.#queue.add(item, request, this.#now)
    } catch (error) {
      equal(error instanceof ServeError, true)
    }
    equal(entry !== undefined, isTaken)
    if (entry !== undefined) this.#entries.set(item, entry)
  }

  #cancel(index: number): void {
    const entry = [...this.#entries.values()][index]
    if (entry === undefined) return
    this.#entries.delete(entry.item)
    if (this.#queue.remove(entry)) this.#naive.cancel(entry.item)
  }

  #onInstance(command: Command & { readonly do: 'finish' | 'lose' }, instance: number): void {
    if (!this.#naive.isBusy(instance)) return
    if (command.do === 'lose') {
      this.#queue.lose(instance)
      this.#naive.lose(instance)
    }
    const again = this.#again(command, instance)
    this.#queue.end(instance)
    this.#naive.finish(instance, this.#now, again)
  }

  /** Lets some of the requests that an instance executes wait for another execution. */
  #again(command: Command, instance: number): readonly string[] {
    if (command.do !== 'finish' || !this.#rules.isIterative) return []
    const again = this.#naive.running(instance).filter((_, i) => command.again[i] === true)
    for (const { item, request } of again) {
      const context = { ...request.context, sequenceStart: false, sequenceEnd: false }
      this.#entries.set(item, this.#queue.add(item, { ...request, context }, this.#now))
      this.rescheduled += 1
    }
    return again.map(({ item }) => item)
  }

  /** As the scheduler does after every event. */
  #look(): void {
    const refused = this.#queue.expire(this.#now).map(([item]) => item)
    this.#naive.pass(this.#now)
    equal(refused.toSorted(), this.#naive.refused.toSorted())
    this.#naive.refused = []
    const begun: (readonly [number, readonly string[]])[] = []
    for (let free = this.#queue.pick(this.#now); free >= 0; free = this.#queue.pick(this.#now)) {
      const items = this.#queue.next()
      this.#queue.begin(free)
      const places = items.map((item) => `${this.#queue.execute(item)?.slot}:${item}`)
      begun.push([free, places])
      this.executions += 1
    }
    equal(begun, this.#naive.begin(this.#now).map(withoutSlots(this.isOldest)))
  }

  isOldest = false
  executions = 0
  rescheduled = 0
}

/** The slots of the oldest strategy have no numbers. */
function withoutSlots(isOldest: boolean) {
  return ([instance, items]: readonly [number, readonly string[]]) => {
    return [instance, isOldest ? items.map((item) => item.replace(/^\d+/, '0')) : items] as const
  }
}

function equal(got: unknown, want: unknown): void {
  const [a, b] = [JSON.stringify(got), JSON.stringify(want)]
  if (a !== b) throw new Error(`got ${a}, want ${b}`)
}

await t.test(
  'sequences have the slots and batches that the rules say, in their order, and none starves',
  async (t) => {
    let executions = 0
    let rescheduled = 0
    fc.assert(
      fc.property(choice, fc.array(command, { maxLength: 60, size: 'max' }), (o, commands) => {
        const pair = new Pair(toRules(o))
        pair.isOldest = !o.isDirect
        for (const next of commands) pair.run(next)
        pair.drain()
        executions += pair.executions
        rescheduled += pair.rescheduled
      }),
      { numRuns: 500 },
    )
    t.ok(executions > 100, `${executions} executions`)
    t.ok(rescheduled > 100, `${rescheduled} requests that execute again`)
  },
)
