import { Loan } from '@tutti/tensor'
import type { OrtLibrary } from './ort-library.ts'

/** Outputs of at least this size are lent, smaller ones copied. */
export const LENT_BYTES = 65_536
/** Views that a session keeps: its arena gives the same places again and again, and each new view costs the collector. */
const KEPT_VIEWS = 64

/**
 * Lends the large outputs of one session's runs where the runtime made them. A copy to fresh memory would cost several times the
 * time of a model.
 */
export class LentOutputs {
  readonly #library: OrtLibrary
  /**
   * Views of outputs, by address. That an address is used again does no harm: a view is given out only while its output is alive.
   */
  readonly #views = new Map<bigint, ArrayBuffer>()

  constructor(library: OrtLibrary) {
    this.#library = library
  }

  /** Makes a view of an output's bytes. @param address - of its data, which stays alive until the loan is over. */
  view(address: bigint, size: number): Uint8Array {
    const kept = this.#views.get(address)
    if (kept !== undefined && kept.byteLength >= size) return new Uint8Array(kept, 0, size)
    const view = this.#library.view(address, size)
    this.#views.delete(address)
    this.#views.set(address, view)
    const [[oldest] = []] = this.#views
    if (this.#views.size > KEPT_VIEWS && oldest !== undefined) this.#views.delete(oldest)
    return new Uint8Array(view, 0, size)
  }

  /**
   * Checks whether an output's data is that of an input, because the graph only passes it on. Such data belongs to the request.
   */
  isInput(address: bigint, inputs: BigUint64Array): boolean {
    const out = new BigUint64Array(1)
    return inputs.some((value) => {
      // Inputs are tensors, for which it cannot fail.
      this.#library.api.getTensorData(value, out)
      return out[0] === address
    })
  }

  /**
   * Lends outputs until all who retained them have given them back.
   *
   * @param values - addresses of OrtValues, which are then released.
   */
  lend(values: readonly bigint[]): Loan {
    return new Loan(() => {
      for (const value of values) this.#library.api.releaseValue(value)
    })
  }
}
