import type { Clock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'

/** Long enough to gather the changes of one turn, short against a heartbeat. */
const SOON_MS = 10

/** The timers that drive the parts of a member, which have no clock. An error in one turn does not stop the next. */
export class Clockwork {
  readonly #clock: Clock
  readonly #failed: (error: ServeError) => void
  readonly #stops = new Map<string, () => void>()
  #isStopped = false

  constructor(clock: Clock, failed: (error: ServeError) => void) {
    this.#clock = clock
    this.#failed = failed
  }

  /** Acts every `everyMs` until `stop`. */
  every(name: string, everyMs: number, act: () => void): void {
    this.#after(name, everyMs, () => {
      this.every(name, everyMs, act)
      act()
    })
  }

  /** Acts once for all calls of the next milliseconds. */
  soon(name: string, act: () => void): void {
    if (!this.#stops.has(name)) this.#after(name, SOON_MS, act)
  }

  stop(): void {
    this.#isStopped = true
    for (const stop of this.#stops.values()) stop()
    this.#stops.clear()
  }

  #after(name: string, ms: number, act: () => void): void {
    if (this.#isStopped) return
    const stop = this.#clock.setTimer(ms, () => {
      this.#stops.delete(name)
      try {
        act()
      } catch (error) {
        this.#failed(ServeError.from(error))
      }
    })
    this.#stops.set(name, stop)
  }
}
