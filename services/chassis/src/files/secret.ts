import { inspect } from 'node:util'

const REDACTED = '[redacted]'

/** A text that must not reach a log: every way of printing it gives `[redacted]`, only `reveal()` gives the text. */
export class SecretText {
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  /** Returns the text itself, for the one place that sends it. */
  reveal(): string {
    return this.#text
  }

  toString(): string {
    return REDACTED
  }

  toJSON(): string {
    return REDACTED
  }

  [inspect.custom](): string {
    return REDACTED
  }
}
