import type { Clock } from '@tutti/chassis'

interface Watcher {
  readonly isSo: () => boolean
  readonly resolve: () => void
}

/** Those who wait for something to be so, and are asked again after each change. */
export class Watchers {
  readonly #waiting = new Set<Watcher>()

  /** Resolves when it is so, at once if it is now, or when the time is over. */
  until(
    isSo: () => boolean,
    o: { readonly timeoutMs: number; readonly clock: Clock },
  ): Promise<void> {
    if (isSo()) return Promise.resolve()
    return new Promise((resolve) => {
      const end = (): void => {
        stopTimer()
        this.#waiting.delete(watcher)
        resolve()
      }
      const watcher = { isSo, resolve: end }
      const stopTimer = o.clock.setTimer(o.timeoutMs, end)
      this.#waiting.add(watcher)
    })
  }

  /** Something changed. */
  look(): void {
    for (const { isSo, resolve } of this.#waiting) if (isSo()) resolve()
  }
}
