import { ServeError } from '@tutti/errors'
import type { QueueEntry } from '../queue/queue-entry.ts'
import type { LevelRules, QueueRules } from '../queue/queue-rules.ts'
import { RequestQueue } from '../queue/request-queue.ts'
import { floats } from './step-builders.ts'

const NO_POLICY: LevelRules = {
  timeoutAction: 'REJECT',
  defaultTimeoutUs: 0,
  allowTimeoutOverride: false,
  maxQueueSize: 0,
}

/** The rules of a model's batching that a test sets; the rest has no effect. */
export interface RuleChoice {
  readonly max?: number
  readonly preferred?: readonly number[]
  readonly delayMs?: number
  readonly levels?: number
  readonly defaultLevel?: number
  readonly policy?: Partial<LevelRules>
  readonly levelPolicies?: Readonly<Record<number, Partial<LevelRules>>>
  readonly maxQueued?: number
}

export function queueRules(o: RuleChoice = {}): QueueRules {
  const max = o.max ?? 8
  const preferred = o.preferred ?? [max]
  return {
    maxBatchSize: max,
    preferredBatchSizes: new Set(preferred),
    maxPreferredBatchSize: Math.max(0, ...preferred),
    maxQueueDelayMs: o.delayMs ?? 0,
    levels: o.levels ?? 0,
    defaultLevel: o.defaultLevel ?? 0,
    defaultLevelRules: { ...NO_POLICY, ...o.policy },
    levelRules: new Map(
      Object.entries(o.levelPolicies ?? {}).map(([level, policy]) => [
        Number(level),
        { ...NO_POLICY, ...policy },
      ]),
    ),
    batchKey: [{ name: 'x', hasShape: true }],
    maxQueuedRequests: o.maxQueued ?? 1000,
  }
}

export interface Offer {
  readonly item: string
  readonly size?: number
  readonly key?: string
  readonly priority?: number
  readonly timeoutUs?: number
  readonly at?: number
}

/** Puts a request into a queue, with defaults. */
export function addOffer(queue: RequestQueue<string>, o: Offer): QueueEntry<string> {
  const { item, size = 1, key = '', priority = 0, timeoutUs = 0, at = 0 } = o
  const context = { id: '', priority: BigInt(priority), timeoutUs: BigInt(timeoutUs) }
  const inputs = [floats('x', [1, Number(key)])]
  return queue.add(item, { batchSize: size, context, inputs }, at)
}

/** One thing that happens to a queue. */
export type QueueCommand =
  | {
      readonly do: 'add'
      readonly size: number
      readonly key: string
      readonly priority: number
      readonly timeoutUs: number
    }
  | { readonly do: 'remove'; readonly index: number }
  | { readonly do: 'pass'; readonly ms: number }
  | { readonly do: 'take' }

/** Drives a queue and checks after each command what must hold of any of them. */
export class QueueModel {
  readonly #rules: QueueRules
  readonly #queue: RequestQueue<string>
  readonly #waiting = new Map<string, QueueEntry<string>>()
  readonly #taken = new Set<string>()
  #now = 0
  #count = 0

  constructor(o: QueueRules) {
    this.#rules = o
    this.#queue = new RequestQueue(o)
  }

  run(command: QueueCommand): void {
    if (command.do === 'add') this.#add(command)
    else if (command.do === 'remove') this.#remove(command.index)
    else if (command.do === 'pass') this.#now += command.ms
    else this.#take()
    for (const [item] of this.#queue.expire(this.#now)) {
      const { expiresAt } = this.#leave(item, 'rejected what does not wait')
      must(expiresAt <= this.#now, 'rejected too early')
      must(this.#rules.defaultLevelRules.timeoutAction === 'REJECT', 'rejected under DELAY')
    }
    must(this.#queue.length === this.#waiting.size, 'length is wrong')
    must(this.#queue.nextExpiry > this.#now, 'an expired request is left')
  }

  drain(): void {
    while (this.#waiting.size > 0) {
      if (!this.#take()) this.#now += 1
      for (const [item] of this.#queue.expire(this.#now)) this.#waiting.delete(item)
    }
    must(this.#queue.next(this.#now) === Number.POSITIVE_INFINITY, 'something is left')
  }

  #add(o: QueueCommand & { readonly do: 'add' }): void {
    const item = String(this.#count++)
    const { size, key, timeoutUs, priority } = o
    try {
      this.#waiting.set(
        item,
        addOffer(this.#queue, { item, size, key, timeoutUs, priority, at: this.#now }),
      )
    } catch (error) {
      must(error instanceof ServeError, 'a strange error')
    }
  }

  #remove(index: number): void {
    const entry = [...this.#waiting.values()][index]
    if (entry === undefined) return
    must(this.#queue.remove(entry), 'a waiting request could not be removed')
    this.#waiting.delete(entry.item)
  }

  #take(): boolean {
    const next = this.#queue.next(this.#now)
    if (typeof next === 'number') {
      must(next > this.#now, 'waits for what is past')
      const isEmpty = this.#waiting.size === 0
      must((next === Number.POSITIVE_INFINITY) === isEmpty, 'idle although requests wait')
      return false
    }
    this.#check(next.map((item) => this.#entry(item, 'executed although it left')))
    return true
  }

  #entry(item: string, fault: string): QueueEntry<string> {
    const entry = this.#waiting.get(item)
    if (entry === undefined) throw new Error(fault)
    return entry
  }

  #leave(item: string, fault: string): QueueEntry<string> {
    const entry = this.#entry(item, fault)
    this.#waiting.delete(item)
    return entry
  }

  #check(entries: readonly QueueEntry<string>[]): void {
    const { maxBatchSize } = this.#rules
    const size = entries.reduce((sum, entry) => sum + entry.size, 0)
    must(entries.length > 0 && size <= maxBatchSize, 'a batch of an illegal size')
    must(
      entries.every(({ key }) => key === entries[0]?.key),
      'a batch of unlike requests',
    )
    for (const entry of entries) {
      must(!this.#taken.has(entry.item), 'executed twice')
      this.#leave(entry.item, 'executed twice in a batch')
      this.#taken.add(entry.item)
      for (const other of this.#waiting.values()) this.#mayPrecede(entry, other, entries)
    }
  }

  /** Nothing overtakes a request of its own level, unless that one was moved back by DELAY. */
  #mayPrecede(
    first: QueueEntry<string>,
    other: QueueEntry<string>,
    batch: readonly QueueEntry<string>[],
  ): void {
    if (batch.includes(other)) return
    must(first.level.number <= other.level.number, 'overtaken by a lower level')
    const isEarlier = other.level === first.level && Number(other.item) < Number(first.item)
    const isDelayed = other.expiresAt <= this.#now
    must(!isEarlier || isDelayed, 'overtaken within its level')
  }
}

function must(condition: boolean, message: string): void {
  if (!condition) throw new Error(message)
}
