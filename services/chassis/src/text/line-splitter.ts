const LINE_END = 10

/** Functions that a LineSplitter gives its lines to. */
export interface LineTaker {
  /** Called before each line. While it returns false, lines are only counted and not decoded. Default: always true. */
  readonly isWanted?: () => boolean
  readonly onLine: (line: string) => void
  readonly onDropped?: (lines: number) => void
  /** Called when a line is longer than allowed. The line is cut, unless this throws. */
  readonly onTooLong?: () => void
}

/** Cuts a stream of bytes into lines, wherever its pieces begin and end. */
export class LineSplitter {
  readonly #most: number
  readonly #taker: LineTaker
  #parts: Buffer[] = []
  #size = 0

  /** @param most - bytes of a line. */
  constructor(most: number, taker: LineTaker) {
    this.#most = most
    this.#taker = taker
  }

  push(chunk: Buffer): void {
    let from = 0
    for (;;) {
      const end = chunk.indexOf(LINE_END, from)
      if (end === -1) break
      if (this.#taker.isWanted?.() === false) {
        from = this.#drop(chunk, from)
        break
      }
      this.#keep(chunk.subarray(from, end))
      this.#emit()
      from = end + 1
    }
    this.#keep(chunk.subarray(from))
  }

  /** Gives the bytes after the last line end as a line, if there are any. */
  flush(): void {
    if (this.#size > 0) this.#emit()
  }

  /** Drops the lines that end in the rest of a chunk, and returns where the next one begins. */
  #drop(chunk: Buffer, from: number): number {
    this.#parts = []
    this.#size = 0
    let [lines, next] = [0, from]
    for (let at = from; at < chunk.length; at += 1) {
      if (chunk[at] !== LINE_END) continue
      lines += 1
      next = at + 1
    }
    this.#taker.onDropped?.(lines)
    return next
  }

  #keep(bytes: Buffer): void {
    const kept = bytes.subarray(0, Math.max(0, this.#most - this.#size))
    if (kept.length < bytes.length) this.#taker.onTooLong?.()
    this.#size += kept.length
    // A copy: the chunk is much larger, mostly.
    if (kept.length > 0) this.#parts.push(Buffer.from(kept))
  }

  #emit(): void {
    // Whole lines only become text: a character's bytes may come in two pieces.
    const line = Buffer.concat(this.#parts).toString('utf8')
    this.#parts = []
    this.#size = 0
    this.#taker.onLine(line.endsWith('\r') ? line.slice(0, -1) : line)
  }
}
