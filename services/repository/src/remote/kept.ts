import type { Clock } from '@tutti/chassis'

/** A value that is good until a time, in milliseconds since the epoch. */
export interface Lasting<T> {
  readonly value: T
  readonly untilMs: number
}

/** Keeps a value that a server gives for a time, such as a token. Concurrent callers share one request. */
export class Kept<T> {
  readonly #clock: Pick<Clock, 'epochMs'>
  #last: { readonly key: string; readonly value: Promise<T>; untilMs: number } | undefined

  constructor(clock: Pick<Clock, 'epochMs'>) {
    this.#clock = clock
  }

  /**
   * Gives the kept value, or calls `ask` if there is none, if it has expired, or if it was kept for another key.
   *
   * @throws the error of `ask`, which is not kept.
   */
  async get(key: string, ask: () => Promise<Lasting<T>>): Promise<T> {
    const there = this.#last
    if (there?.key === key && there.untilMs > this.#clock.epochMs()) return await there.value
    const asked = ask()
    const next = {
      key,
      value: asked.then(({ value }) => value),
      untilMs: Number.POSITIVE_INFINITY,
    }
    this.#last = next
    try {
      next.untilMs = (await asked).untilMs
    } catch {
      // All that wait for the value get the error.
      if (this.#last === next) this.#last = undefined
    }
    return await next.value
  }
}
