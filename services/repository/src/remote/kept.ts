import type { Clock } from '@tutti/chassis'

/** A value that is good until a time, in milliseconds since the epoch. */
export interface Lasting<T> {
  readonly value: T
  readonly untilMs: number
}

/** Keeps what a server gives for a time, such as a token. One asks for it, others wait for the same answer. */
export class Kept<T> {
  readonly #clock: Pick<Clock, 'epochMs'>
  #last: { readonly key: string; readonly value: Promise<T>; untilMs: number } | undefined

  constructor(clock: Pick<Clock, 'epochMs'>) {
    this.#clock = clock
  }

  /** @param key - with another one, what is kept does not count. @throws what `ask` throws; that is not kept. */
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
