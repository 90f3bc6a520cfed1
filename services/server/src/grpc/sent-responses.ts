import type { ServerHttp2Stream } from 'node:http2'
import { ReadyGate } from '@tutti/tensor'

/** Bytes of responses that may wait for the client before the models are held up. */
const MAX_UNSENT_BYTES = 1024 * 1024

/** The responses of one stream that its client has not taken yet. */
export class SentResponses {
  readonly #stream: ServerHttp2Stream
  readonly #onTaken: (bytes: number, isAll: boolean) => void
  readonly #gate = new ReadyGate()
  #unsentBytes = 0

  /** @param onTaken - the client has taken a response, or is gone; `isAll` if none waits for it now. */
  constructor(stream: ServerHttp2Stream, onTaken: (bytes: number, isAll: boolean) => void) {
    this.#stream = stream
    this.#onTaken = onTaken
  }

  send(frame: Buffer): void {
    const { byteLength } = frame
    this.#unsentBytes += byteLength
    this.#stream.write(frame, () => this.#taken(byteLength))
  }

  /** Undefined while the client keeps up, else the wait for it. */
  ready(): Promise<void> | undefined {
    return this.#unsentBytes <= MAX_UNSENT_BYTES ? undefined : this.#gate.wait()
  }

  /** The client is gone: waiting for it ends. */
  goOn(): void {
    this.#gate.open()
  }

  #taken(bytes: number): void {
    this.#unsentBytes -= bytes
    this.#onTaken(bytes, this.#unsentBytes === 0)
    if (this.#unsentBytes <= MAX_UNSENT_BYTES) this.#gate.open()
  }
}
