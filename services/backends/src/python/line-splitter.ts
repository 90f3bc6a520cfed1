/** Cuts what comes into lines. A longer one is cut short, its rest dropped. */
export class LineSplitter {
  readonly #most: number
  readonly #onLine: (line: string) => void
  #parts: Buffer[] = []
  #size = 0

  /** @param most - bytes of a line. */
  constructor(most: number, onLine: (line: string) => void) {
    this.#most = most
    this.#onLine = onLine
  }

  push(chunk: Buffer): void {
    let from = 0
    for (;;) {
      const end = chunk.indexOf(10, from)
      if (end === -1) break
      this.#keep(chunk.subarray(from, end))
      this.#emit()
      from = end + 1
    }
    this.#keep(chunk.subarray(from))
  }

  /** Gives what came after the last line end, if there is something. */
  flush(): void {
    if (this.#size > 0) this.#emit()
  }

  #keep(bytes: Buffer): void {
    const kept = bytes.subarray(0, Math.max(0, this.#most - this.#size))
    this.#size += kept.length
    // A copy: the chunk is much larger, mostly.
    if (kept.length > 0) this.#parts.push(Buffer.from(kept))
  }

  #emit(): void {
    const line = Buffer.concat(this.#parts).toString('utf8')
    this.#parts = []
    this.#size = 0
    this.#onLine(line.endsWith('\r') ? line.slice(0, -1) : line)
  }
}
