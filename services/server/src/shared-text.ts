import type { Clock } from '@tutti/chassis'

/** Of the time between two texts, the part that goes into making them: 1 in 10. */
const REST = 9
/** However long the last one took. */
const MOST_REST_MS = 1000

/**
 * Makes a text for all who ask for it at about the same time. Each gets one that was begun after it asked, so nobody gets old
 * figures; who asks while one is made, or soon after, waits and shares the next one.
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

  /** @throws whatever making it does. */
  get(): Promise<Buffer> {
    return (this.#next ??= this.#makeNext())
  }

  async #makeNext(): Promise<Buffer> {
    await this.#free
    // Who asks from here on may miss what happened since.
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
