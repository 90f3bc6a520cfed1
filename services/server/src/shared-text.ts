import type { Clock } from '@tutti/chassis'

/** Time without a new text, times the time that the last one took: making texts takes a tenth of all. */
const REST = 9
/** Longest such time. */
const MOST_REST_MS = 1000

/**
 * Makes one text for all callers that ask at about the same time. A caller gets a text that was begun after it asked, so the
 * figures are fresh. Callers that ask while a text is made, or soon after, wait and share the next text.
 */
export class SharedText {
  readonly #make: () => Promise<string>
  readonly #clock: Pick<Clock, 'now' | 'setTimer'>
  #next: Promise<Buffer> | undefined
  /** Resolves when no text is being made, and the time after it is over. */
  #free: Promise<void> | undefined

  constructor(make: () => Promise<string>, clock: Pick<Clock, 'now' | 'setTimer'>) {
    this.#make = make
    this.#clock = clock
  }

  /** Waits for the next text. @throws as `make` does. */
  get(): Promise<Buffer> {
    return (this.#next ??= this.#makeNext())
  }

  async #makeNext(): Promise<Buffer> {
    await this.#free
    // A caller that asks from here on wants a text that begins later.
    this.#next = undefined
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#free = promise
    const beganAt = this.#clock.now()
    try {
      return Buffer.from(await this.#make())
    } finally {
      const restMs = Math.min(MOST_REST_MS, REST * (this.#clock.now() - beganAt))
      if (restMs > 0) this.#clock.setTimer(restMs, resolve)
      else resolve()
    }
  }
}
