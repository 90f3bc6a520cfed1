import { ServeError } from '@tutti/errors'
import { outputBytes, type StepResponse } from '@tutti/tensor'

/** How far an engine that does not wait may be ahead of its reader; LoadedModel names these figures to engines. */
const MAX_RESPONSES = 1024
const MAX_BYTES = 256 * 1024 * 1024

/** Counts the responses to a request that came since its reader was ready for one. */
export class ReaderLag {
  #responses = 0
  #bytes = 0

  /** @returns why the request ends, if the reader is too far behind. */
  add(response: StepResponse, isReady: boolean): ServeError | undefined {
    this.#responses = isReady ? 0 : this.#responses + 1
    this.#bytes = isReady ? 0 : this.#bytes + outputBytes(response)
    if (this.#responses <= MAX_RESPONSES && this.#bytes <= MAX_BYTES) return undefined
    const text = `the reader is behind: ${this.#responses} responses of ${this.#bytes} bytes came before it was ready, want at most ${MAX_RESPONSES} and ${MAX_BYTES}`
    return new ServeError('OVERLOADED', text)
  }
}
