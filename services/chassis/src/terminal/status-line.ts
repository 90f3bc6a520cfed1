import { printable } from '../text/printable.ts'

/** Standard error of a process. */
export interface ErrorStream {
  readonly isTTY?: boolean
  /** Characters in a line. */
  readonly columns?: number
  write(text: string): unknown
}

const CLEAR = '\r\u001b[K'
/**
 * Sequence that makes the terminal cut a line instead of wrapping it, so that one line has to be cleared. A character may be two
 * columns wide.
 */
const CUT = '\u001b[?7l'
const WRAP = '\u001b[?7h'
/** Columns of a terminal that does not say how many it has. */
const COLUMNS = 80

/** Last line of a terminal, which shows the work under way. It makes way for other lines and is drawn again below them. */
export class StatusLine {
  readonly #terminal: ErrorStream
  /** Texts that are shown, by their owners. */
  readonly #texts = new Map<object, string>()
  #isDrawn = false

  constructor(terminal: ErrorStream) {
    this.#terminal = terminal
  }

  /** Makes the status line of standard error. @returns undefined if standard error is no terminal, or TERM is unset or `dumb`. */
  static of(
    stderr: ErrorStream,
    env: Readonly<Record<string, string | undefined>>,
  ): StatusLine | undefined {
    const isDumb = env['TERM'] === undefined || env['TERM'] === 'dumb'
    return stderr.isTTY === true && !isDumb ? new StatusLine(stderr) : undefined
  }

  /** Draws the line again with the text of `owner`, which replaces the owner's earlier text. */
  show(owner: object, text: string): void {
    this.#texts.set(owner, printable(text))
    const line = [...this.#texts.values()].join(' | ')
    const columns = this.#terminal.columns || COLUMNS
    this.#isDrawn = true
    this.#terminal.write(`${CLEAR}${CUT}${line.slice(0, columns - 1)}${WRAP}`)
  }

  /** Forgets the text of an owner, which has nothing more to show. */
  hide(owner: object): void {
    if (this.#texts.delete(owner)) this.clear()
  }

  /** Clears the line until the next `show`. It is called before another line is written to the terminal. */
  clear(): void {
    if (!this.#isDrawn) return
    this.#isDrawn = false
    this.#terminal.write(CLEAR)
  }
}
