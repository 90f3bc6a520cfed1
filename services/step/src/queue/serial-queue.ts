import { overloaded } from './dynamic-queue.ts'
import { EntryList, type QueueEntry } from './entry-list.ts'
import { EMPTY, type QueueDecision, type QueueOffer, type RequestQueue } from './request-queue.ts'

/**
 * The queue of a model without a batcher: one request at a time, in order of arrival. Priorities and queue timeouts
 * belong to dynamic batching and do nothing here, as in Triton.
 */
export class SerialQueue<T> implements RequestQueue<T> {
  readonly nextExpiry = Number.POSITIVE_INFINITY
  readonly #maxQueuedRequests: number
  readonly #entries = new EntryList<T>()

  constructor(maxQueuedRequests: number) {
    this.#maxQueuedRequests = maxQueuedRequests
  }

  get length(): number {
    return this.#entries.length
  }

  add(offer: QueueOffer<T>, now: number): QueueEntry<T> {
    if (this.#entries.length >= this.#maxQueuedRequests) throw overloaded(this.#maxQueuedRequests)
    const entry: QueueEntry<T> = {
      item: offer.item,
      size: Math.max(1, offer.size),
      key: offer.key,
      level: 0,
      enqueuedAt: now,
      expiresAt: Number.POSITIVE_INFINITY,
      list: undefined,
      previous: undefined,
      next: undefined,
      heapIndex: -1,
    }
    this.#entries.append(entry)
    return entry
  }

  remove(entry: QueueEntry<T>): boolean {
    if (entry.list !== this.#entries) return false
    this.#entries.remove(entry)
    return true
  }

  expire(): readonly QueueEntry<T>[] {
    return []
  }

  next(): QueueDecision<T> {
    const first = this.#entries.first
    if (first === undefined) return EMPTY
    this.#entries.remove(first)
    return { kind: 'batch', entries: [first] }
  }

  clear(): readonly QueueEntry<T>[] {
    const entries: QueueEntry<T>[] = []
    for (let e = this.#entries.first; e !== undefined; e = this.#entries.first) {
      this.#entries.remove(e)
      entries.push(e)
    }
    return entries
  }
}
