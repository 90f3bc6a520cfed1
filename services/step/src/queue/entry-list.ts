import { assert } from '@tutti/errors'

/** One waiting request. Links are the list's, `heapIndex` the expiry heap's: both are O(1) to leave. */
export interface QueueEntry<T> {
  readonly item: T
  /** Items in the batch dimension, at least 1. */
  readonly size: number
  /** Requests of different keys never share a batch. */
  readonly key: string
  /** 0 without priority levels; 1 is the highest. */
  readonly level: number
  /** Milliseconds of the injected clock. */
  readonly enqueuedAt: number
  /** When the queue's own timeout strikes; Infinity if never. */
  readonly expiresAt: number
  list: EntryList<T> | undefined
  previous: QueueEntry<T> | undefined
  next: QueueEntry<T> | undefined
  /** -1 when the entry is not in the heap. */
  heapIndex: number
}

/** A doubly linked list through the entries themselves, because requests leave from the middle when they are cancelled. */
export class EntryList<T> {
  #first: QueueEntry<T> | undefined
  #last: QueueEntry<T> | undefined
  #length = 0

  get first(): QueueEntry<T> | undefined {
    return this.#first
  }

  get length(): number {
    return this.#length
  }

  append(entry: QueueEntry<T>): void {
    assert(entry.list === undefined, 'a queue entry is in two lists')
    entry.list = this
    entry.previous = this.#last
    entry.next = undefined
    if (this.#last === undefined) this.#first = entry
    else this.#last.next = entry
    this.#last = entry
    this.#length += 1
  }

  remove(entry: QueueEntry<T>): void {
    assert(entry.list === this, 'a queue entry is not in this list')
    if (entry.previous === undefined) this.#first = entry.next
    else entry.previous.next = entry.next
    if (entry.next === undefined) this.#last = entry.previous
    else entry.next.previous = entry.previous
    entry.list = undefined
    entry.previous = undefined
    entry.next = undefined
    this.#length -= 1
  }
}
