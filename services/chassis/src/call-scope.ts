import { ServeError } from '@tutti/errors'
import type { CallContext, TraceParent } from './call-context.ts'
import type { Clock } from './clock.ts'

/** One piece of work's own context. Whoever opened it closes it when the work has ended, however it ended. */
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
  readonly remainingMs?: number
  /** Its abort and its reason carry over; it may live for long. */
  readonly parent?: AbortSignal
  readonly trace?: TraceParent
}

/**
 * Opens a call scope. Costs one object until someone reads `context.signal`; only then are the controller, the timer and
 * the listener on the parent made.
 */
export function openCallScope(o: CallScopeOptions): CallScope {
  const limit = o.remainingMs
  const deadlineAt =
    limit === undefined || limit === Number.POSITIVE_INFINITY ? undefined : o.clock.now() + limit
  const state = new ScopeState(o.clock, o.parent, deadlineAt, limit ?? 0)
  return {
    // An own getter, not one of a class: `{ ...context }` must keep the signal.
    context: {
      get signal() {
        return state.signal
      },
      ...(deadlineAt === undefined ? {} : { deadlineAt }),
      ...(o.trace === undefined ? {} : { trace: o.trace }),
    },
    cancel: (error) => state.cancel(error),
    close: () => state.close(),
  }
}

/** Node's timers may fire a fraction of a millisecond early; a remainder below this counts as over. */
const TIMER_SLACK_MS = 1

class ScopeState {
  readonly #clock: Clock
  readonly #parent: AbortSignal | undefined
  readonly #deadlineAt: number | undefined
  readonly #limitMs: number
  #controller: AbortController | undefined
  #error: ServeError | undefined
  #isClosed = false
  #stopTimer: (() => void) | undefined
  readonly #onParentAbort = (): void => {
    if (this.#parent !== undefined) this.cancel(signalError(this.#parent))
  }

  constructor(
    clock: Clock,
    parent: AbortSignal | undefined,
    deadlineAt: number | undefined,
    limitMs: number,
  ) {
    this.#clock = clock
    this.#parent = parent
    this.#deadlineAt = deadlineAt
    this.#limitMs = limitMs
  }

  get signal(): AbortSignal {
    this.#controller ??= this.#watch()
    return this.#controller.signal
  }

  cancel(error: ServeError): void {
    if (this.#isClosed || this.#error !== undefined) return
    this.#error = error
    this.#release()
    this.#controller?.abort(error)
  }

  close(): void {
    this.#isClosed = true
    this.#release()
  }

  #watch(): AbortController {
    const controller = new AbortController()
    if (this.#error !== undefined) {
      controller.abort(this.#error)
    } else if (!this.#isClosed) {
      this.#controller = controller
      this.#parent?.addEventListener('abort', this.#onParentAbort, { once: true })
      if (this.#parent?.aborted) this.#onParentAbort()
      else this.#checkDeadline()
    }
    return controller
  }

  /** Runs when the timer fires too: a timer may be shorter than the deadline, as Node's longest is 25 days. */
  #checkDeadline(): void {
    if (this.#deadlineAt === undefined) return
    const leftMs = this.#deadlineAt - this.#clock.now()
    if (leftMs >= TIMER_SLACK_MS) {
      this.#stopTimer = this.#clock.setTimer(leftMs, () => this.#checkDeadline())
    } else {
      this.cancel(deadlineError(this.#limitMs))
    }
  }

  #release(): void {
    this.#stopTimer?.()
    this.#stopTimer = undefined
    this.#parent?.removeEventListener('abort', this.#onParentAbort)
  }
}

function deadlineError(limitMs: number): ServeError {
  const limit = Math.max(0, Math.round(limitMs))
  return new ServeError('DEADLINE_EXCEEDED', `deadline of ${limit} ms exceeded`)
}

/** Milliseconds that are left, 0 when the time is over; undefined without a deadline. What travels to the next process. */
export function remainingMs(context: CallContext, clock: Clock): number | undefined {
  if (context.deadlineAt === undefined) return undefined
  return Math.max(0, context.deadlineAt - clock.now())
}

/**
 * Why a signal aborted, as our error. A plain abort becomes CANCELLED, a timeout of `AbortSignal.timeout`
 * DEADLINE_EXCEEDED.
 */
export function signalError(signal: AbortSignal): ServeError {
  const reason: unknown = signal.reason
  if (reason instanceof DOMException && reason.name === 'TimeoutError') {
    return new ServeError('DEADLINE_EXCEEDED', 'deadline exceeded', { cause: reason })
  }
  if (reason === undefined || (reason instanceof DOMException && reason.name === 'AbortError')) {
    return new ServeError('CANCELLED', 'the call was cancelled', { cause: reason })
  }
  return ServeError.from(reason)
}

/**
 * Waits for a promise or for the signal, whichever comes first. An abandoned promise's later rejection is dropped: the
 * caller was answered with the signal's reason already.
 *
 * @throws ServeError, the signal's reason, at once if it has aborted.
 */
export function raceSignal<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signalError(signal))
    signal.addEventListener('abort', onAbort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
    if (signal.aborted) onAbort()
  })
}
