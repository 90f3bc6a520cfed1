import { ReadyGate } from '@tutti/tensor'
import type { ServerCall } from '../call/server-call.ts'

/** Bytes of responses that may wait for the client before the models are held up. */
const MAX_UNSENT_BYTES = 1024 * 1024

/** Sends the responses of a call that has several, and counts those that its client has not taken yet. */
export class SentResponses {
  readonly #call: ServerCall
  readonly #gate = new ReadyGate()
  #unsentBytes = 0

  constructor(call: ServerCall) {
    this.#call = call
    // The client is gone: waiting for it ends.
    call.whenClosed(() => this.#gate.open())
  }

  /**
   * Sends a frame, unless the call is over.
   *
   * @param frame - charged to the call; its bytes are released once the client has taken them or is gone.
   * @throws ServeError OVERLOADED, the call is over then.
   */
  send(frame: Buffer): void {
    const call = this.#call
    const { byteLength } = frame
    if (call.isOver || call.stream.isOver) return call.release(byteLength)
    call.ticket.move(byteLength, call.unread)
    call.sendHeaders()
    if (this.#unsentBytes === 0) call.offer()
    this.#add(byteLength)
    call.answer.write(frame, () => this.#taken(byteLength))
  }

  /** Waits until the client has caught up with the responses. @returns undefined if it keeps up, or if the call is over. */
  ready(): Promise<void> | undefined {
    if (this.#call.isOver || !this.#isBehind) return undefined
    return this.#gate.wait()
  }

  /** Counts sent bytes. A client that is behind holds up everything of the call. */
  #add(bytes: number): void {
    const wasBehind = this.#isBehind
    this.#unsentBytes += bytes
    if (this.#isBehind !== wasBehind) this.#call.ticket.waitForClient(wasBehind ? undefined : true)
  }

  get #isBehind(): boolean {
    return this.#unsentBytes > MAX_UNSENT_BYTES
  }

  /** Notes that the client has taken a response, or is gone. */
  #taken(bytes: number): void {
    this.#call.unread.release(bytes)
    this.#add(-bytes)
    if (this.#unsentBytes === 0) this.#call.allTaken()
    else this.#call.offer()
    if (!this.#isBehind) this.#gate.open()
  }
}
