import type { ByteCount, CancelSignal, ServeError } from '@tutti/errors'
import type { CallContext, Clock, TraceParent } from './call-context.ts'
import { deadlineError, signalError } from './signal-error.ts'

export const systemClock: Clock = {
  now: () => performance.now(),
  epochMs: () => Date.now(),
  setTimer: (delayMs, callback) => {
    // Node fires at once above 2^31 - 1 ms; such a timer is as good as never.
    const timer = setTimeout(callback, Math.min(Math.max(0, delayMs), 2 ** 31 - 1))
    return () => clearTimeout(timer)
  },
}

/** Monotonic nanoseconds, the same clock on every thread of the process. */
export function monotonicNs(): number {
  const [seconds, ns] = process.hrtime()
  return seconds * 1e9 + ns
}

/** One piece of work's own context. The opener closes it when the work has ended, however it ended. */
export interface CallScope {
  readonly context: CallContext
  /** Aborts `context.signal` with `error`. The first cause wins; nothing after `close()`. */
  cancel(error: ServeError): void
  /** Takes back the timer and the listener on the parent. The signal keeps the state that it has. */
  close(): void
}

export interface CallScopeOptions {
  readonly clock: Clock
  /** Time that is left; absent for no deadline, 0 or less if it is over already. */
  readonly remainingMs?: number | undefined
  /** Name of the limit in the error; 'deadline' if absent. */
  readonly limitName?: string
  /** Its abort and its reason carry over; it may live for long. */
  readonly parent?: CancelSignal
  readonly trace?: TraceParent | undefined
  readonly memory?: ByteCount | undefined
}

/**
 * Opens a call scope. Costs two objects until someone looks at the signal or listens to it; only then are the timer and the
 * listener on the parent made.
 */
export function openCallScope(o: CallScopeOptions): CallScope {
  return new ScopeSignal(o)
}

/** Node's timers may fire a fraction of a millisecond early; a remainder below this counts as over. */
const TIMER_SLACK_MS = 1

/** A scope and its signal in one. */
class ScopeSignal implements CallScope, CancelSignal {
  readonly context: CallContext
  readonly #o: CallScopeOptions
  #error: ServeError | undefined
  #isWatching = false
  #isClosed = false
  #stopTimer: (() => void) | undefined
  #onParentAbort: (() => void) | undefined
  /** One, mostly, for which a Set would be large. */
  #listeners: (() => void)[] = []

  constructor(o: CallScopeOptions) {
    this.#o = o
    const { clock, remainingMs: limitMs = Number.POSITIVE_INFINITY, trace, memory } = o
    this.context = {
      signal: this,
      ...(limitMs !== Number.POSITIVE_INFINITY && { deadlineAt: clock.now() + limitMs }),
      ...(trace !== undefined && { trace }),
      ...(memory !== undefined && { memory }),
    }
  }

  get aborted(): boolean {
    this.#watch()
    return this.#error !== undefined
  }

  get reason(): unknown {
    this.#watch()
    return this.#error
  }

  /** Every listener is called once at most, as a signal aborts once. */
  addEventListener(_type: 'abort', listener: () => void): void {
    this.#watch()
    if (!this.#listeners.includes(listener)) this.#listeners.push(listener)
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    const at = this.#listeners.indexOf(listener)
    if (at >= 0) this.#listeners.splice(at, 1)
  }

  cancel(error: ServeError): void {
    if (this.#isClosed || this.#error !== undefined) return
    this.#error = error
    this.#release()
    for (const listener of this.#listeners.splice(0)) listener()
  }

  close(): void {
    this.#isClosed = true
    this.#release()
  }

  #watch(): void {
    if (this.#isWatching || this.#isClosed || this.#error !== undefined) return
    this.#isWatching = true
    const { parent } = this.#o
    if (parent !== undefined) {
      this.#onParentAbort = () => this.cancel(signalError(parent))
      parent.addEventListener('abort', this.#onParentAbort, { once: true })
      if (parent.aborted) this.#onParentAbort()
    }
    if (this.#error === undefined) this.#checkDeadline()
  }

  /** Runs when the timer fires too: a timer may be shorter than the deadline, as Node's longest is 25 days. */
  #checkDeadline(): void {
    const { deadlineAt } = this.context
    if (deadlineAt === undefined) return
    const { clock } = this.#o
    const leftMs = deadlineAt - clock.now()
    if (leftMs >= TIMER_SLACK_MS) {
      this.#stopTimer = clock.setTimer(leftMs, () => this.#checkDeadline())
    } else {
      this.cancel(deadlineError(this.#o))
    }
  }

  #release(): void {
    this.#stopTimer?.()
    this.#stopTimer = undefined
    if (this.#onParentAbort !== undefined) {
      this.#o.parent?.removeEventListener('abort', this.#onParentAbort)
      this.#onParentAbort = undefined
    }
  }
}

/** Milliseconds that are left, 0 when the time is over; undefined without a deadline. What travels to the next process. */
export function remainingMs({ deadlineAt }: CallContext, clock: Clock): number | undefined {
  return deadlineAt === undefined ? undefined : Math.max(0, deadlineAt - clock.now())
}

/** True once the time of a call is over, also in the moment before its own timer says so; false without a deadline. */
export function isTimeOver({ deadlineAt }: CallContext, clock: Clock): boolean {
  return deadlineAt !== undefined && deadlineAt - clock.now() < TIMER_SLACK_MS
}
