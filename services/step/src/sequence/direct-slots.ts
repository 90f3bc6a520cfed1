import type { InstanceSlots, Sequence, SequenceEntry } from './sequence.ts'
import type { DirectRules } from './sequence-rules.ts'

/**
 * Slots of Triton's direct strategy: a sequence keeps its place in the batch of its instance. The places are the same as in a
 * running Triton 2.51.
 */
export class DirectSlots<T> implements InstanceSlots<T> {
  readonly #rules: DirectRules
  readonly #slots: (Sequence<T> | undefined)[]
  #used = 0

  constructor(slots: number, rules: DirectRules) {
    this.#rules = rules
    this.#slots = Array.from({ length: slots }, () => undefined)
  }

  get used(): number {
    return this.#used
  }

  get sequences(): Iterable<Sequence<T>> {
    return this.#slots.filter((sequence) => sequence !== undefined)
  }

  /** Takes the lowest free slot, because a batch is padded up to its highest used slot. */
  take(sequence: Sequence<T>): number {
    const slot = this.#slots.indexOf(undefined)
    this.#slots[slot] = sequence
    this.#used += 1
    return slot
  }

  free(_sequence: Sequence<T>, slot: number): void {
    this.#slots[slot] = undefined
    this.#used -= 1
  }

  // The slots show which requests may execute.
  offer(): void {}
  withdraw(): void {}

  /** @see triton-inference-server/core, sequence_batch_scheduler.cc, DirectSequenceBatch::BatcherThread */
  next(now: number): readonly SequenceEntry<T>[] | number {
    const ready: SequenceEntry<T>[] = []
    let oldest: SequenceEntry<T> | undefined
    for (const sequence of this.#slots) {
      const first = sequence?.waiting[0]
      if (first === undefined) continue
      ready.push(first)
      if (oldest === undefined || first.enqueuedAt < oldest.enqueuedAt) oldest = first
    }
    if (oldest === undefined) return Number.POSITIVE_INFINITY
    const { maxQueueDelayMs, enough } = this.#rules
    const delayEnd = oldest.enqueuedAt + maxQueueDelayMs
    if (now < delayEnd && ready.length < enough) return delayEnd
    // Triton compares with the lowest slot, which can starve the others.
    const { key } = oldest
    return ready.filter((entry) => entry.key === key)
  }
}
