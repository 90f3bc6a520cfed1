import { setImmediate as nextTurn } from 'node:timers/promises'

/** Turns of the event loop, one after the other, for work that is done piece by piece: no turn has two pieces. */
export class LoopTurns {
  #last: Promise<void> = Promise.resolve()

  /** Resolves in a turn of its own, after those that were asked for before. */
  next(): Promise<void> {
    this.#last = this.#last.then(() => nextTurn())
    return this.#last
  }
}
