import type { ServerHttp2Stream } from 'node:http2'

/** Bytes of responses that may wait for the client before the models are held up. */
const MAX_UNSENT_BYTES = 1024 * 1024

/** The responses of one stream that its client has not taken yet. */
export class SentResponses {
  readonly #stream: ServerHttp2Stream
  readonly #onTaken: (bytes: number, isAll: boolean) => void
  #unsentBytes = 0
  /** Waits until the client has taken enough. */
  #waiting: (() => void)[] = []

  /** @param onTaken - the client has taken a response, or is gone; `isAll` if none waits for it now. */
  constructor(stream: ServerHttp2Stream, onTaken: (bytes: number, isAll: boolean) => void) {
    this.#stream = stream
    this.#onTaken = onTaken
  }

  /** Sends a response. @returns undefined while the client keeps up, else the wait for it. */
  send(frame: Buffer): Promise<void> | undefined {
    const { byteLength } = frame
    this.#unsentBytes += byteLength
    this.#stream.write(frame, () => this.#taken(byteLength))
    if (this.#unsentBytes <= MAX_UNSENT_BYTES) return undefined
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  /** Nobody waits for the client any more. */
  goOn(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const resolve of waiting) resolve()
  }

  #taken(bytes: number): void {
    this.#unsentBytes -= bytes
    this.#onTaken(bytes, this.#unsentBytes === 0)
    if (this.#unsentBytes <= MAX_UNSENT_BYTES) this.goOn()
  }
}
