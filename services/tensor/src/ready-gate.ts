/** Where those wait who want to send a further response. Costs nothing as long as none does. */
export class ReadyGate {
  #waiting: PromiseWithResolvers<void> | undefined

  /** Resolves at the next `open`. */
  wait(): Promise<void> {
    this.#waiting ??= Promise.withResolvers()
    return this.#waiting.promise
  }

  /** Lets those go who wait now; they ask again whether the sink is ready. */
  open(): void {
    this.#waiting?.resolve()
    this.#waiting = undefined
  }
}

/** How far a producer of responses may be ahead of their reader: as long as both hold the reader is ready for one more. */
export interface ResponseWindow {
  readonly responses: number
  /** Bytes of outputs. */
  readonly bytes: number
}

/** More than a round trip's worth of small responses, or a few pictures. */
export const RESPONSE_WINDOW: ResponseWindow = { responses: 16, bytes: 4 * 1024 * 1024 }
