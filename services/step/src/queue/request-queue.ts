import { ServeError } from '@tutti/errors'
import { planBatch } from './batch-plan.ts'
import type { QueueEntry } from './queue-entry.ts'
import type { LevelRules, QueueRules } from './queue-rules.ts'

/** What a queue has to know about a request to place it. */
export interface QueueOffer<T> {
  readonly item: T
  /** Items in the batch dimension; 0 counts as 1. */
  readonly size: number
  readonly key: string
  /** As the client sent it; 0n is the default level. */
  readonly priority: bigint
  /** The client's queue timeout in microseconds; 0n is none. */
  readonly timeoutUs: bigint
}

/** What to do next for a free instance. */
export type QueueDecision<T> =
  | { readonly kind: 'empty' }
  /** The entries have left the queue and are to be executed together. */
  | { readonly kind: 'batch'; readonly entries: readonly QueueEntry<T>[] }
  /** Ask again at this moment of the clock, or when something arrives or leaves. */
  | { readonly kind: 'wait'; readonly until: number }

/** One shared object: deciding "nothing to do" allocates nothing. */
const EMPTY = { kind: 'empty' } as const

/**
 * The requests of one model version that wait for an instance, as one list in the order of service: by priority level, in a level by
 * arrival, those that DELAY moved back last (triton-semantics 2.7). No clock of its own: time comes in as `now`.
 */
export class RequestQueue<T> {
  readonly #rules: QueueRules
  /** Requests expire in the order of service. */
  readonly #hasOneTimeout: boolean
  #first: QueueEntry<T> | undefined
  #last: QueueEntry<T> | undefined
  #length = 0
  /** Requests in levels without a bound of their own. */
  #unbounded = 0
  /** Requests in each level that has a bound and holds some. */
  readonly #bounded = new Map<number, number>()
  #nextExpiry = Number.POSITIVE_INFINITY

  constructor(rules: QueueRules) {
    this.#rules = rules
    this.#hasOneTimeout = rules.levels === 0 && !rules.defaultLevelRules.allowTimeoutOverride
  }

  get length(): number {
    return this.#length
  }

  /** No request expires before. It may have left since: then `expire` finds nothing and looks for the next. */
  get nextExpiry(): number {
    return this.#nextExpiry
  }

  /** @throws ServeError QUEUE_FULL or OVERLOADED, without the `[request id: ...]` prefix. */
  add(offer: QueueOffer<T>, now: number): QueueEntry<T> {
    const level = levelOf(offer.priority, this.#rules)
    const rules = this.#rules.levelRules.get(level) ?? this.#rules.defaultLevelRules
    this.#admit(level, rules)
    const entry: QueueEntry<T> = {
      item: offer.item,
      size: Math.max(1, offer.size),
      key: offer.key,
      level,
      rules,
      enqueuedAt: now,
      expiresAt: now + timeoutMs(rules, offer.timeoutUs),
      isWaiting: true,
      isDelayed: false,
      previous: undefined,
      next: undefined,
    }
    this.#link(entry)
    this.#length += 1
    this.#count(entry, 1)
    if (entry.expiresAt < this.#nextExpiry) this.#nextExpiry = entry.expiresAt
    return entry
  }

  /** False if the entry has left already. */
  remove(entry: QueueEntry<T>): boolean {
    if (!entry.isWaiting) return false
    entry.isWaiting = false
    this.#unlink(entry)
    this.#length -= 1
    this.#count(entry, -1)
    if (this.#length === 0) this.#nextExpiry = Number.POSITIVE_INFINITY
    return true
  }

  /**
   * Applies the queue timeouts. Looks at the whole queue where requests or levels differ in theirs: it is called when a request may be
   * due and the length is bounded, while a heap costs every request more.
   *
   * @returns the entries that are rejected; they have left the queue.
   */
  expire(now: number): readonly QueueEntry<T>[] {
    const rejected: QueueEntry<T>[] = []
    this.#nextExpiry = Number.POSITIVE_INFINITY
    for (let entry = this.#first, next = entry?.next; entry !== undefined; entry = next) {
      next = entry.next
      if (entry.isDelayed) continue
      if (entry.expiresAt > now) {
        this.#nextExpiry = Math.min(this.#nextExpiry, entry.expiresAt)
        if (this.#hasOneTimeout) break
      } else if (entry.rules.timeoutAction === 'DELAY') {
        this.#unlink(entry)
        entry.isDelayed = true
        this.#link(entry)
      } else {
        this.remove(entry)
        rejected.push(entry)
      }
    }
    return rejected
  }

  next(now: number): QueueDecision<T> {
    if (this.#first === undefined) return EMPTY
    const { count, waitUntil } = planBatch(this.#first, this.#rules.batching, now)
    if (count === 0) return { kind: 'wait', until: waitUntil }
    return { kind: 'batch', entries: this.#take(count) }
  }

  /** Empties the queue. @returns what was in it. */
  clear(): readonly QueueEntry<T>[] {
    return this.#take(this.#length)
  }

  #take(count: number): QueueEntry<T>[] {
    const entries: QueueEntry<T>[] = []
    while (this.#first !== undefined && entries.length < count) {
      entries.push(this.#first)
      this.remove(this.#first)
    }
    return entries
  }

  #admit(level: number, { maxQueueSize }: LevelRules): void {
    if (maxQueueSize > 0) {
      if ((this.#bounded.get(level) ?? 0) < maxQueueSize) return
      throw new ServeError('QUEUE_FULL', 'Exceeds maximum queue size')
    }
    const most = this.#rules.maxQueuedRequests
    if (this.#unbounded < most) return
    throw new ServeError(
      'OVERLOADED',
      `${most} requests wait for the model, which is the server's bound`,
    )
  }

  #count({ level, rules }: QueueEntry<T>, change: 1 | -1): void {
    if (rules.maxQueueSize === 0) {
      this.#unbounded += change
      return
    }
    const length = (this.#bounded.get(level) ?? 0) + change
    if (length > 0) this.#bounded.set(level, length)
    else this.#bounded.delete(level)
  }

  /** From the back: only what is of a lower level or delayed is passed. */
  #link(entry: QueueEntry<T>): void {
    let previous = this.#last
    while (previous !== undefined && isServedAfter(previous, entry)) previous = previous.previous
    const next = previous === undefined ? this.#first : previous.next
    entry.previous = previous
    entry.next = next
    if (previous === undefined) this.#first = entry
    else previous.next = entry
    if (next === undefined) this.#last = entry
    else next.previous = entry
  }

  #unlink(entry: QueueEntry<T>): void {
    const { previous, next } = entry
    if (previous === undefined) this.#first = next
    else previous.next = next
    if (next === undefined) this.#last = previous
    else next.previous = previous
    entry.previous = undefined
    entry.next = undefined
  }
}

/** Whether a waiting request comes after one that is put into the queue now. */
function isServedAfter<T>(waiting: QueueEntry<T>, entry: QueueEntry<T>): boolean {
  if (waiting.level !== entry.level) return waiting.level > entry.level
  return waiting.isDelayed && !entry.isDelayed
}

function levelOf(priority: bigint, { levels, defaultLevel }: QueueRules): number {
  return priority <= 0n || priority > levels ? defaultLevel : Number(priority)
}

/** The model's timeout, or the request's own where it may override and is shorter. Infinity if there is none. */
function timeoutMs(rules: LevelRules, ownUs: bigint): number {
  const { defaultTimeoutUs } = rules
  if (defaultTimeoutUs === 0) return Number.POSITIVE_INFINITY
  const isShorter = rules.allowTimeoutOverride && ownUs > 0n && ownUs < defaultTimeoutUs
  return (isShorter ? Number(ownUs) : defaultTimeoutUs) / 1000
}
