import type { EngineLog } from '../onnxruntime/session-instance.ts'

/** Where lines of models and their processes go. */
export interface PythonLog extends EngineLog {
  error(message: string, fields: Readonly<Record<string, unknown>>): void
  debug(message: string, fields: Readonly<Record<string, unknown>>): void
}

export const SILENT_LOG: PythonLog = {
  error: () => {},
  warn: () => {},
  info: () => {},
  debug: () => {},
}

/** Who a line comes from. */
export interface LineOrigin {
  readonly model: string
  readonly version: string
  readonly instance: string
}

/** What the program of a model writes must not fill the log: so many lines a second, the rest is counted. */
const LINES_PER_SECOND = 200
const BURST_LINES = 1000

/** Lets a bounded number of lines through and says how many it dropped. */
export class LineBudget {
  readonly #now: () => number
  #lines = BURST_LINES
  #at: number
  #dropped = 0

  /** @param now - monotonic milliseconds. */
  constructor(now: () => number) {
    this.#now = now
    this.#at = now()
  }

  /** Whether a line may pass now. */
  hasRoom(): boolean {
    const now = this.#now()
    this.#lines = Math.min(BURST_LINES, this.#lines + ((now - this.#at) / 1000) * LINES_PER_SECOND)
    this.#at = now
    return this.#lines >= 1
  }

  /** Counts lines that did not pass. */
  drop(lines: number): void {
    this.#dropped += lines
  }

  /** @returns undefined if the line is too much, else how many were dropped since the last one. */
  take(): number | undefined {
    if (!this.hasRoom()) {
      this.drop(1)
      return undefined
    }
    this.#lines -= 1
    const dropped = this.#dropped
    this.#dropped = 0
    return dropped
  }
}
