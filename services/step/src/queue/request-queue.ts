import { ServeError } from '@tutti/errors'
import { requestPrefix } from '@tutti/tensor'
import { type AutoDelayOptions, heldUntil } from './auto-delay.ts'
import type { Level, QueuedRequest, QueueEntry } from './queue-entry.ts'
import { batchKey, type LevelRules, type QueueRules } from './queue-rules.ts'

/**
 * Requests of one model version that wait for an instance, in the order of service: by priority level, and within a level by
 * arrival. Requests that DELAY moved back come last in their level (triton-semantics 2.7). The caller passes the time as `now`,
 * in milliseconds.
 */
export class RequestQueue<T> {
  readonly #rules: QueueRules
  #first: QueueEntry<T> | undefined
  #last: QueueEntry<T> | undefined
  #length = 0
  readonly #levels = new Map<number, Level>()
  readonly #unlimited = { count: 0 }
  #nextExpiry = Number.POSITIVE_INFINITY
  readonly #auto: AutoDelayOptions<T> | undefined

  constructor(rules: QueueRules, auto?: AutoDelayOptions<T>) {
    this.#rules = rules
    this.#auto = auto
  }

  get length(): number {
    return this.#length
  }

  /**
   * Time before which no request expires. The request may have left since: then `expire` finds nothing and looks for the next
   * one.
   */
  get nextExpiry(): number {
    return this.#nextExpiry
  }

  /** Adds a request. @returns its entry, for `remove`. @throws ServeError QUEUE_FULL or OVERLOADED. */
  add(item: T, request: QueuedRequest, now: number): QueueEntry<T> {
    const { id, priority, timeoutUs } = request.context
    const level = this.#levelOf(priority)
    this.#admit(level, id)
    const { batchKey: inputs } = this.#rules
    const entry: QueueEntry<T> = {
      item,
      size: Math.max(1, request.batchSize),
      key: inputs === undefined ? '' : batchKey(inputs, request),
      level,
      enqueuedAt: now,
      expiresAt: now + timeoutMs(level.rules, timeoutUs),
      isWaiting: true,
      isDelayed: false,
      previous: undefined,
      next: undefined,
    }
    this.#link(entry)
    this.#auto?.delay.arrived(now, this.#length === 0)
    this.#length += 1
    level.waiting.count += 1
    if (entry.expiresAt < this.#nextExpiry) this.#nextExpiry = entry.expiresAt
    return entry
  }

  /** Removes an entry. @returns false if it has left already. */
  remove(entry: QueueEntry<T>): boolean {
    if (!entry.isWaiting) return false
    entry.isWaiting = false
    this.#unlink(entry)
    this.#length -= 1
    entry.level.waiting.count -= 1
    if (this.#length === 0) this.#nextExpiry = Number.POSITIVE_INFINITY
    return true
  }

  /**
   * Applies the queue timeouts. It looks at the whole queue, whose length is bounded; a heap would cost every request more.
   *
   * @returns the rejected requests, which have left the queue, each with its error.
   */
  expire(now: number): readonly (readonly [T, ServeError])[] {
    const rejected: [T, ServeError][] = []
    this.#nextExpiry = Number.POSITIVE_INFINITY
    for (let entry = this.#first, next = entry?.next; entry !== undefined; entry = next) {
      next = entry.next
      if (entry.isDelayed) continue
      if (entry.expiresAt > now) {
        this.#nextExpiry = Math.min(this.#nextExpiry, entry.expiresAt)
      } else if (entry.level.rules.timeoutAction === 'DELAY') {
        this.#unlink(entry)
        entry.isDelayed = true
        this.#link(entry)
      } else {
        this.remove(entry)
        rejected.push([entry.item, new ServeError('QUEUE_TIMEOUT', 'Request timeout expired')])
      }
    }
    return rejected
  }

  /**
   * Decides on the next batch as Triton's dynamic batcher does. It takes the largest preferred size that can be formed. Else it
   * takes all that fits once the oldest request has waited `maxQueueDelayMs`, the automatic delay is over, or nothing more can
   * join. Else the requests wait. Client batches stay whole.
   *
   * @returns the requests to execute together, which have left the queue; or the time to ask again, Infinity while none waits.
   * @see triton-inference-server/core, dynamic_batch_scheduler.cc, GetDynamicBatch
   */
  next(now: number): readonly T[] | number {
    const first = this.#first
    if (first === undefined) return Number.POSITIVE_INFINITY
    const { maxBatchSize, maxPreferredBatchSize, maxQueueDelayMs } = this.#rules
    if (maxBatchSize === 1) return this.#take(1)
    const found = gather(first, this.#rules)
    const delayEnd = found.oldest + maxQueueDelayMs
    const isDelayOver = maxQueueDelayMs > 0 && now >= delayEnd
    if (found.preferredCount > 0 && !isDelayOver) return this.#take(found.preferredCount)
    const canGrow = !found.isFull && found.size < maxPreferredBatchSize
    const end = this.#auto ? heldUntil(this.#auto, { ...found, first }, now) : delayEnd
    return canGrow && end > now ? end : this.#take(found.count)
  }

  /** Empties the queue. @returns the requests that were in it. */
  clear(): readonly T[] {
    return this.#take(this.#length)
  }

  #take(count: number): T[] {
    this.#auto?.delay.released()
    const items: T[] = []
    while (this.#first !== undefined && items.length < count) {
      items.push(this.#first.item)
      this.remove(this.#first)
    }
    return items
  }

  #levelOf(priority: bigint): Level {
    const { levels, defaultLevel, levelRules, defaultLevelRules } = this.#rules
    const number = priority <= 0n || priority > levels ? defaultLevel : Number(priority)
    const known = this.#levels.get(number)
    if (known !== undefined) return known
    const rules = levelRules.get(number) ?? defaultLevelRules
    const waiting = rules.maxQueueSize > 0 ? { count: 0 } : this.#unlimited
    const level = { number, rules, waiting }
    this.#levels.set(number, level)
    return level
  }

  #admit({ rules: { maxQueueSize }, waiting: { count } }: Level, id: string): void {
    const most = this.#rules.maxQueuedRequests
    if (count < (maxQueueSize > 0 ? maxQueueSize : most)) return
    const prefix = requestPrefix(id)
    if (maxQueueSize > 0) throw new ServeError('QUEUE_FULL', `${prefix}Exceeds maximum queue size`)
    const text = `${prefix}${most} requests wait for the model, which is the server's bound`
    throw new ServeError('OVERLOADED', text)
  }

  /** Links an entry, searching from the back: it passes only entries of a lower level or delayed ones. */
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

/** Tells whether a waiting request comes after one that is put into the queue now. */
function isServedAfter<T>(waiting: QueueEntry<T>, entry: QueueEntry<T>): boolean {
  if (waiting.level !== entry.level) return waiting.level.number > entry.level.number
  return waiting.isDelayed && !entry.isDelayed
}

/** Returns the model's timeout, or the request's own if it may override and is shorter; Infinity without one. */
function timeoutMs(rules: LevelRules, ownUs: bigint): number {
  const { defaultTimeoutUs } = rules
  if (defaultTimeoutUs === 0) return Number.POSITIVE_INFINITY
  const isShorter = rules.allowTimeoutOverride && ownUs > 0n && ownUs < defaultTimeoutUs
  return (isShorter ? Number(ownUs) : defaultTimeoutUs) / 1000
}

/** Gathers the entries that could share a batch, counted from the front of the queue, across priority levels. */
function gather(first: QueueEntry<unknown>, rules: QueueRules) {
  let count = 0
  let size = 0
  /** Entries up to the largest preferred size that can be formed; 0 if none can. */
  let preferredCount = 0
  /** The next one cannot join, so that waiting cannot make the batch larger. */
  let isFull = false
  let oldest = Number.POSITIVE_INFINITY
  for (
    let entry: QueueEntry<unknown> | undefined = first;
    entry !== undefined;
    entry = entry.next
  ) {
    const grown = size + entry.size
    if (count > 0) {
      // The batch passes the largest preferred size without meeting one: what is there counts as preferred.
      if (grown > rules.maxPreferredBatchSize && preferredCount === 0) preferredCount = count
      isFull = grown > rules.maxBatchSize || entry.key !== first.key
      if (isFull) break
    }
    size = grown
    count += 1
    if (entry.enqueuedAt < oldest) oldest = entry.enqueuedAt
    if (rules.preferredBatchSizes.has(size)) preferredCount = count
  }
  return { count, size, preferredCount, isFull, oldest }
}
