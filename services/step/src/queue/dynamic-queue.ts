import { ServeError } from '@tutti/errors'
import { planBatch } from './batch-plan.ts'
import { EntryList, type QueueEntry } from './entry-list.ts'
import { ExpiryHeap } from './expiry-heap.ts'
import type { DynamicRules, QueueRules } from './queue-rules.ts'
import { EMPTY, type QueueDecision, type QueueOffer, type RequestQueue } from './request-queue.ts'

/** One priority level: requests in time, and behind them those that DELAY has moved back. */
interface Level<T> {
  readonly number: number
  readonly rules: QueueRules
  readonly waiting: EntryList<T>
  readonly delayed: EntryList<T>
}

/** What holds until the moment `until` if requests of the same key arrive and stay below `belowSize` in all. */
interface Waiting {
  readonly until: number
  readonly key: string
  readonly belowSize: number
}

/** The queue of a model with dynamic batching: priority levels, queue policies and batch formation (triton-semantics 2.7). */
export class DynamicQueue<T> implements RequestQueue<T> {
  readonly #rules: DynamicRules
  /** Highest priority first. A level exists while it holds requests, so a client cannot make them pile up. */
  readonly #levels: Level<T>[] = []
  readonly #expiries = new ExpiryHeap<T>()
  #length = 0
  #size = 0
  /** Requests in levels without a bound of their own. */
  #unboundedLength = 0
  #waiting: Waiting | undefined

  constructor(rules: DynamicRules) {
    this.#rules = rules
  }

  get length(): number {
    return this.#length
  }

  get nextExpiry(): number {
    return this.#expiries.earliest
  }

  add(offer: QueueOffer<T>, now: number): QueueEntry<T> {
    const number = this.#levelOf(offer.priority)
    const rules = this.#rules.levelRules.get(number) ?? this.#rules.defaultLevelRules
    const found = this.#levels.find((level) => level.number === number)
    this.#admit(rules, found)
    const level = found ?? this.#openLevel(number, rules)
    const entry: QueueEntry<T> = {
      item: offer.item,
      size: Math.max(1, offer.size),
      key: offer.key,
      level: number,
      enqueuedAt: now,
      expiresAt: now + timeoutMs(rules, offer.timeoutUs),
      list: undefined,
      previous: undefined,
      next: undefined,
      heapIndex: -1,
    }
    level.waiting.append(entry)
    if (entry.expiresAt !== Number.POSITIVE_INFINITY) this.#expiries.add(entry)
    if (rules.maxQueueSize === 0) this.#unboundedLength += 1
    this.#length += 1
    this.#size += entry.size
    if (this.#waiting !== undefined && !this.#keepsWaiting(this.#waiting, entry)) {
      this.#waiting = undefined
    }
    return entry
  }

  remove(entry: QueueEntry<T>): boolean {
    const list = entry.list
    const level = this.#levels.find(({ waiting, delayed }) => waiting === list || delayed === list)
    if (list === undefined || level === undefined) return false
    list.remove(entry)
    this.#expiries.remove(entry)
    if (level.rules.maxQueueSize === 0) this.#unboundedLength -= 1
    this.#length -= 1
    this.#size -= entry.size
    this.#waiting = undefined
    if (level.waiting.length + level.delayed.length === 0) {
      this.#levels.splice(this.#levels.indexOf(level), 1)
    }
    return true
  }

  expire(now: number): readonly QueueEntry<T>[] {
    const rejected: QueueEntry<T>[] = []
    for (let e = this.#expiries.first; e !== undefined && e.expiresAt <= now; ) {
      const level = this.#levels.find(({ waiting }) => waiting === e?.list)
      if (level?.rules.timeoutAction === 'DELAY') {
        this.#expiries.remove(e)
        level.waiting.remove(e)
        level.delayed.append(e)
        this.#waiting = undefined
      } else {
        this.remove(e)
        rejected.push(e)
      }
      e = this.#expiries.first
    }
    return rejected
  }

  next(now: number): QueueDecision<T> {
    const first = this.#levels[0] && firstOf(this.#levels[0])
    if (first === undefined) return EMPTY
    if (this.#waiting !== undefined && now < this.#waiting.until) {
      return { kind: 'wait', until: this.#waiting.until }
    }
    const { batching } = this.#rules
    const plan = planBatch(first, (entry) => this.#following(entry), batching, now)
    if (plan.count === 0) {
      this.#waiting = { until: plan.waitUntil, key: first.key, belowSize: this.#nextPreferred() }
      return { kind: 'wait', until: plan.waitUntil }
    }
    return { kind: 'batch', entries: this.#take(first, plan.count) }
  }

  clear(): readonly QueueEntry<T>[] {
    const first = this.#levels[0] && firstOf(this.#levels[0])
    return first === undefined ? [] : this.#take(first, this.#length)
  }

  #take(first: QueueEntry<T>, count: number): QueueEntry<T>[] {
    const entries: QueueEntry<T>[] = []
    for (let e: QueueEntry<T> | undefined = first; e !== undefined && entries.length < count; ) {
      entries.push(e)
      e = this.#following(e)
    }
    for (const entry of entries) this.remove(entry)
    return entries
  }

  #levelOf(priority: bigint): number {
    const { levels, defaultLevel } = this.#rules
    return priority <= 0n || priority > BigInt(levels) ? defaultLevel : Number(priority)
  }

  #admit(rules: QueueRules, level: Level<T> | undefined): void {
    const length = level === undefined ? 0 : level.waiting.length + level.delayed.length
    if (rules.maxQueueSize > 0) {
      if (length >= rules.maxQueueSize) {
        throw new ServeError('QUEUE_FULL', 'Exceeds maximum queue size')
      }
    } else if (this.#unboundedLength >= this.#rules.maxQueuedRequests) {
      throw overloaded(this.#rules.maxQueuedRequests)
    }
  }

  #openLevel(number: number, rules: QueueRules): Level<T> {
    const level = { number, rules, waiting: new EntryList<T>(), delayed: new EntryList<T>() }
    const behind = this.#levels.findIndex((other) => other.number > number)
    this.#levels.splice(behind === -1 ? this.#levels.length : behind, 0, level)
    return level
  }

  #following(entry: QueueEntry<T>): QueueEntry<T> | undefined {
    if (entry.next !== undefined) return entry.next
    const index = this.#levels.findIndex((level) => level.number === entry.level)
    const level = this.#levels[index]
    if (level?.waiting === entry.list && level?.delayed.first !== undefined) {
      return level.delayed.first
    }
    const behind = this.#levels[index + 1]
    return behind && firstOf(behind)
  }

  #keepsWaiting(waiting: Waiting, added: QueueEntry<T>): boolean {
    return added.key === waiting.key && this.#size < waiting.belowSize
  }

  /** The least queued size that changes the plan: the next preferred size above what is there. */
  #nextPreferred(): number {
    let next = this.#rules.batching.maxPreferredBatchSize
    for (const size of this.#rules.batching.preferredBatchSizes) {
      if (size > this.#size && size < next) next = size
    }
    return next
  }
}

/** Our own bound, for queues that the model's configuration leaves unbounded. */
export function overloaded(maxQueuedRequests: number): ServeError {
  return new ServeError(
    'OVERLOADED',
    `${maxQueuedRequests} requests wait for the model, which is the server's bound`,
  )
}

function firstOf<T>(level: Level<T>): QueueEntry<T> | undefined {
  return level.waiting.first ?? level.delayed.first
}

/** The model's timeout, or the request's own where it may override and is shorter. Infinity if there is none. */
function timeoutMs(rules: QueueRules, ownUs: bigint): number {
  const { defaultTimeoutUs } = rules
  if (defaultTimeoutUs === 0) return Number.POSITIVE_INFINITY
  const isShorter = rules.allowTimeoutOverride && ownUs > 0n && ownUs < BigInt(defaultTimeoutUs)
  return (isShorter ? Number(ownUs) : defaultTimeoutUs) / 1000
}
