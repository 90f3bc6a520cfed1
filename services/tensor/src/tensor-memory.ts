import { bug } from '@tutti/errors'

/** Names bytes that somebody owns. In the owner's process `bytes` are the bytes themselves (a view, not a copy). */
export interface TensorRef {
  /** The process (router or step replica) that holds the bytes until it releases them. */
  readonly owner: string
  readonly id: number
  readonly bytes: Uint8Array
}

interface Slot {
  readonly ref: TensorRef
  readonly giveBack: (() => void) | undefined
  references: number
}

/**
 * Counts references to tensors in flight, so that bytes are let go as soon as the last consumer has them.
 * The bytes are ordinary memory: releasing drops our reference and the collector does the rest.
 */
export class TensorMemory {
  readonly owner: string
  #next = 1
  #bytesInUse = 0
  readonly #slots = new Map<number, Slot>()

  constructor(owner: string) {
    this.owner = owner
  }

  /** Total of the held tensors, in bytes. Zero when no request is in flight. */
  get bytesInUse(): number {
    return this.#bytesInUse
  }

  get count(): number {
    return this.#slots.size
  }

  /**
   * Holds `bytes` with one reference.
   *
   * @param giveBack - called with the last reference, for bytes that are lent; others are handed over.
   */
  hold(bytes: Uint8Array, giveBack?: () => void): TensorRef {
    const ref = { owner: this.owner, id: this.#next++, bytes }
    this.#slots.set(ref.id, { ref, giveBack, references: 1 })
    this.#bytesInUse += bytes.byteLength
    return ref
  }

  /** The reference with this id; a broken invariant if it was released. */
  get(id: number): TensorRef {
    return this.#slot(id).ref
  }

  retain(id: number): void {
    this.#slot(id).references += 1
  }

  /** Drops one reference; with the last one the slot is gone. */
  release(id: number): void {
    const slot = this.#slot(id)
    slot.references -= 1
    if (slot.references > 0) return
    this.#slots.delete(id)
    this.#bytesInUse -= slot.ref.bytes.byteLength
    slot.giveBack?.()
  }

  #slot(id: number): Slot {
    const slot = this.#slots.get(id)
    if (slot === undefined) throw bug(`tensor ${id} of ${this.owner} is not held`)
    return slot
  }
}
