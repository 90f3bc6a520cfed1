import type { ServerHttp2Stream } from 'node:http2'

/** Bytes of responses that may wait for the client before the models are held up. */
const MAX_UNSENT_BYTES = 1024 * 1024

/** The call whose responses are sent, and what it hears of them. */
interface SendingCall {
  /** The client has a response to take, after it had none. */
  offer(): void
  /** The client has taken a response, or is gone. @param isAll - none waits for it now. */
  taken(bytes: number, isAll: boolean): void
}

/** The responses of one stream that its client has not taken yet. */
export class SentResponses {
  readonly #stream: ServerHttp2Stream
  readonly #call: SendingCall
  #unsentBytes = 0
  /** Waits until the client has taken enough. */
  #onTaken: (() => void)[] = []

  constructor(stream: ServerHttp2Stream, call: SendingCall) {
    this.#stream = stream
    this.#call = call
  }

  /** Sends a response. @returns undefined while the client keeps up, else the wait for it. */
  send(frame: Buffer): Promise<void> | undefined {
    const { byteLength } = frame
    if (this.#unsentBytes === 0) this.#call.offer()
    this.#unsentBytes += byteLength
    this.#stream.write(frame, () => this.#taken(byteLength))
    if (this.#unsentBytes <= MAX_UNSENT_BYTES) return undefined
    return new Promise((resolve) => this.#onTaken.push(resolve))
  }

  /** Nobody waits for the client any more. */
  goOn(): void {
    const waiting = this.#onTaken
    this.#onTaken = []
    for (const resolve of waiting) resolve()
  }

  #taken(bytes: number): void {
    this.#unsentBytes -= bytes
    this.#call.taken(bytes, this.#unsentBytes === 0)
    if (this.#unsentBytes <= MAX_UNSENT_BYTES) this.goOn()
  }
}
