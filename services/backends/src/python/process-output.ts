import type { Socket } from 'node:net'
import { LineBudget, LineSplitter, type Logger } from '@tutti/chassis'

/** Source of a log line. */
export interface LineOrigin {
  readonly model: string
  readonly version: string
  readonly instance: string
}

/** Limit on the log lines of a model's program: 200 a second, 1000 at once. Further lines are counted. */
export const MODEL_LINES = { lines: 1000, everyMs: 5 }

/** Longer lines of a model are cut. */
const MOST_LINE_BYTES = 8192
/** Bytes that an error may tell of a crash. */
const LAST_WORDS_BYTES = 4096
const LINGER_MS = 1000
const FATAL = 'Fatal Python error:'

/** Logs the output of a model's process line by line, and keeps its end for the error of a crash. */
export class ProcessOutput {
  readonly #log: Logger
  readonly #origin: LineOrigin
  readonly #budget: LineBudget
  readonly #sockets: Socket[] = []
  readonly #closed: Promise<void>[] = []
  #lastWords = ''

  constructor(log: Logger, origin: LineOrigin, now: () => number) {
    this.#log = log
    this.#origin = origin
    this.#budget = new LineBudget({ clock: { now }, ...MODEL_LINES })
  }

  take(stream: 'stdout' | 'stderr', socket: Socket): void {
    const lines = new LineSplitter(MOST_LINE_BYTES, {
      isWanted: () => this.#budget.hasCapacity(),
      onLine: (line) => this.#onLine(stream, line),
      onDropped: (count) => this.#budget.drop(count),
    })
    this.#sockets.push(socket)
    this.#closed.push(
      new Promise((resolve) => {
        socket.on('data', (chunk: Buffer) => {
          if (stream === 'stderr') this.#remember(chunk)
          lines.push(chunk)
        })
        socket.once('close', () => {
          lines.flush()
          resolve()
        })
      }),
    )
  }

  /** Resolves, after the end of the process, when all of its output has been read. */
  async ended(): Promise<void> {
    // A process that it has started may have inherited its outputs and outlive it, where the system cannot tell us.
    const timer = setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy()
    }, LINGER_MS)
    await Promise.all(this.#closed)
    clearTimeout(timer)
  }

  /** Report of the interpreter on a crash, with the Python frames; '' if there is none. */
  get crashReport(): string {
    const at = this.#lastWords.lastIndexOf(FATAL)
    return at === -1 ? '' : this.#lastWords.slice(at).trimEnd()
  }

  /** Remembers output, dropped lines too, so that a crash after a flood has its report. */
  #remember(chunk: Buffer): void {
    const last = chunk.subarray(-LAST_WORDS_BYTES).toString()
    this.#lastWords = `${this.#lastWords}${last}`.slice(-LAST_WORDS_BYTES)
  }

  #onLine(stream: 'stdout' | 'stderr', line: string): void {
    const dropped = this.#budget.take()
    if (dropped === undefined) return
    this.#log.info('model output', {
      ...this.#origin,
      stream,
      line,
      ...(dropped > 0 && { droppedLines: dropped }),
    })
  }
}
