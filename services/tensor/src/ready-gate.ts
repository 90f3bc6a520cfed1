/** Gate where senders wait until they may send a further response. It makes no promise until a sender waits. */
export class ReadyGate {
  #waiting: PromiseWithResolvers<void> | undefined

  /** Resolves at the next `open`. */
  wait(): Promise<void> {
    this.#waiting ??= Promise.withResolvers()
    return this.#waiting.promise
  }

  /** Lets all senders go that wait now. They ask again whether the sink is ready. */
  open(): void {
    this.#waiting?.resolve()
    this.#waiting = undefined
  }
}

/**
 * Bounds on how far a producer of responses may be ahead of their reader. The reader is ready for one more while both bounds
 * hold.
 */
export interface ResponseWindow {
  readonly responses: number
  /** Bytes of outputs. */
  readonly bytes: number
}

/** Window that takes more small responses than come in a round trip, or a few pictures. */
export const RESPONSE_WINDOW: ResponseWindow = { responses: 16, bytes: 4 * 1024 * 1024 }
