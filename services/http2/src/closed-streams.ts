const KEPT = 256

/** How the last streams of a connection have ended, so that frames that were on their way can be told from those that are wrong. */
export class ClosedStreams {
  /** A ring of stream ids; negative where we ended the stream before its client had. */
  readonly #ids = new Int32Array(KEPT)
  #next = 0

  /** @param wasCut - frames of the client may still be on their way. */
  add(id: number, wasCut: boolean): void {
    this.#ids[this.#next] = wasCut ? -id : id
    this.#next = (this.#next + 1) % KEPT
  }

  wasCut(id: number): boolean {
    return this.#ids.includes(-id)
  }

  hasEnded(id: number): boolean {
    return this.#ids.includes(id)
  }
}
