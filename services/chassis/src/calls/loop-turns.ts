import { setImmediate as nextTurn } from 'node:timers/promises'

/** Gives out turns of the event loop one at a time, so that work done in pieces does one piece per turn. */
export class LoopTurns {
  #last: Promise<void> = Promise.resolve()

  /** Waits for a turn that no other caller gets. Callers get their turns in the order of their calls. */
  next(): Promise<void> {
    this.#last = this.#last.then(() => nextTurn())
    return this.#last
  }
}
