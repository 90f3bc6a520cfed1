const LINE_END = 10

/** Functions that take the lines. */
export interface LineTaker {
  /** Asked before each line. While it says no, lines are only counted: nothing is made of them. Default: always yes. */
  readonly isWanted?: () => boolean
  readonly onLine: (line: string) => void
  readonly onDropped?: (lines: number) => void
  /** A line has more bytes than it may; it is cut short, unless this throws. */
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

  /** Gives what came after the last line end, if there is something. */
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
