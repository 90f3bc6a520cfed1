const KEPT = 256

/** Record of how the last streams of a connection have ended. It tells late frames, which were on their way, from wrong ones. */
export class ClosedStreams {
  /** A ring of stream ids; negative where we ended the stream before its client had. */
  readonly #ids = new Int32Array(KEPT)
  #next = 0

  /** Adds a stream that has ended. @param wasCut - true if frames of the client may still be on their way. */
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
