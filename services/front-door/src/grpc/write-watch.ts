import type { Clock } from '@tutti/chassis'

/** A call whose answer is on its way to the client. */
export interface WatchedCall {
  /** When its client could first take the answer, or last took a response of a stream; undefined while there is none to take. */
  readonly offeredAt: number | undefined
  /** The client has had its time. */
  cutOff(timeoutMs: number): void
}

export interface WriteWatchOptions {
  readonly clock: Clock
  readonly timeoutMs: number
  /** The calls of this moment, as a copy. */
  readonly calls: () => Iterable<WatchedCall>
  readonly onCutOff: () => void
}

/**
 * Cuts off clients that do not take their answers: with a flow-control window of 0 they would hold them for ever. All calls
 * share one timer, since a timer for each would be paid for by every small call, and is there only while there are answers.
 */
export class WriteWatch {
  readonly #o: WriteWatchOptions
  #stopTimer: (() => void) | undefined
  #isClosed = false

  constructor(o: WriteWatchOptions) {
    this.#o = o
  }

  /** Says that a client has something to take from now on. @returns now, for `offeredAt`. */
  begin(): number {
    const { clock, timeoutMs } = this.#o
    if (!this.#isClosed) this.#stopTimer ??= clock.setTimer(timeoutMs, this.#check)
    return clock.now()
  }

  /** No timer runs from now on. */
  close(): void {
    this.#isClosed = true
    this.#stopTimer?.()
  }

  readonly #check = (): void => {
    const { clock, timeoutMs, calls, onCutOff } = this.#o
    this.#stopTimer = undefined
    const now = clock.now()
    let oldest = Number.POSITIVE_INFINITY
    for (const call of calls()) {
      const { offeredAt } = call
      if (offeredAt === undefined) continue
      if (now - offeredAt >= timeoutMs) {
        onCutOff()
        call.cutOff(timeoutMs)
      } else oldest = Math.min(oldest, offeredAt)
    }
    if (oldest === Number.POSITIVE_INFINITY) return
    this.#stopTimer = clock.setTimer(oldest + timeoutMs - now, this.#check)
  }
}
