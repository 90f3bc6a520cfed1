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

/** Reads the monotonic clock in nanoseconds. It is the same on every thread of the process. */
export function monotonicNs(): number {
  const [seconds, ns] = process.hrtime()
  return seconds * 1e9 + ns
}

/** Context of one piece of work. The caller that opens it closes it when the work ends, whether it succeeds or fails. */
export interface CallScope {
  readonly context: CallContext
  /** Aborts `context.signal` with `error`. Only the first call has an effect, and no call has one after `close()`. */
  cancel(error: ServeError): void
  /** Cancels the timer and removes the listener from the parent. The signal keeps its present state. */
  close(): void
}

export interface CallScopeOptions {
  readonly clock: Clock
  /** Time left, in milliseconds; absent for no deadline, 0 or less if the deadline has passed. */
  readonly remainingMs?: number | undefined
  /** Name of the limit in the error; 'deadline' if absent. */
  readonly limitName?: string
  /** Signal that this scope follows: when it aborts, the scope aborts with the same reason. It may outlive the scope. */
  readonly parent?: CancelSignal
  readonly trace?: TraceParent | undefined
  readonly memory?: ByteCount | undefined
}

/** Opens a call scope. It sets the timer and listens to the parent only once someone reads the signal or listens to it. */
export function openCallScope(o: CallScopeOptions): CallScope {
  return new ScopeSignal(o)
}

/** Remainder below which time counts as over, because Node's timers may fire a fraction of a millisecond early. */
const TIMER_SLACK_MS = 1

/** A scope and its signal in one. */
class ScopeSignal implements CallScope, CancelSignal {
  readonly context: CallContext
  readonly #options: CallScopeOptions
  #error: ServeError | undefined
  #isWatching = false
  #isClosed = false
  #stopTimer: (() => void) | undefined
  #onParentAbort: (() => void) | undefined
  /** One, mostly, for which a Set would be large. */
  #listeners: (() => void)[] = []

  constructor(o: CallScopeOptions) {
    this.#options = o
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

  /** Adds a listener, which is called once at most, as a signal aborts once. */
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
    const { parent } = this.#options
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
    const { clock } = this.#options
    const leftMs = deadlineAt - clock.now()
    if (leftMs >= TIMER_SLACK_MS) {
      this.#stopTimer = clock.setTimer(leftMs, () => this.#checkDeadline())
    } else {
      this.cancel(deadlineError(this.#options))
    }
  }

  #release(): void {
    this.#stopTimer?.()
    this.#stopTimer = undefined
    if (this.#onParentAbort !== undefined) {
      this.#options.parent?.removeEventListener('abort', this.#onParentAbort)
      this.#onParentAbort = undefined
    }
  }
}

/**
 * Computes the milliseconds that are left: 0 when the time is over, undefined without a deadline. The next process gets this
 * value.
 */
export function remainingMs({ deadlineAt }: CallContext, clock: Clock): number | undefined {
  return deadlineAt === undefined ? undefined : Math.max(0, deadlineAt - clock.now())
}

/** Checks whether the time of a call is over: true from 1 ms before the deadline on, false without a deadline. */
export function isTimeOver({ deadlineAt }: CallContext, clock: Clock): boolean {
  return deadlineAt !== undefined && deadlineAt - clock.now() < TIMER_SLACK_MS
}
