import type { QueueEntry } from '../queue/queue-entry.ts'
import { RequestQueue } from '../queue/request-queue.ts'
import type { InstanceSlots, Sequence, SequenceEntry } from './sequence.ts'
import type { OldestRules } from './sequence-rules.ts'

/** Slots of Triton's oldest strategy: a dynamic batch over the sequences of an instance, with at most one request of each. */
export class OldestSlots<T> implements InstanceSlots<T> {
  readonly #queue: RequestQueue<SequenceEntry<T>>
  readonly #offered = new Map<SequenceEntry<T>, QueueEntry<SequenceEntry<T>>>()
  readonly #sequences = new Set<Sequence<T>>()

  constructor({ queue }: OldestRules) {
    this.#queue = new RequestQueue(queue)
  }

  get used(): number {
    return this.#sequences.size
  }

  get sequences(): Iterable<Sequence<T>> {
    return this.#sequences
  }

  take(sequence: Sequence<T>): number {
    this.#sequences.add(sequence)
    return 0
  }

  free(sequence: Sequence<T>): void {
    this.#sequences.delete(sequence)
  }

  offer(entry: SequenceEntry<T>, now: number): void {
    this.#offered.set(entry, this.#queue.add(entry, entry.request, now))
  }

  withdraw(entry: SequenceEntry<T>): void {
    const offered = this.#offered.get(entry)
    if (offered === undefined) return
    this.#offered.delete(entry)
    this.#queue.remove(offered)
  }

  next(now: number): readonly SequenceEntry<T>[] | number {
    const next = this.#queue.next(now)
    if (typeof next !== 'number') for (const entry of next) this.#offered.delete(entry)
    return next
  }
}
