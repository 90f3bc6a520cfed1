import { type Clock, type LogFields, type Logger, sleep } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'

/** The waits before something that ended by itself is started again: from the first, doubling up to the longest. */
export interface RestartPace {
  readonly firstMs: number
  readonly longestMs: number
  /** Milliseconds of life after which the next wait is the first again. */
  readonly resetMs: number
}

/** A thread or a process. */
export interface Endable {
  /** Calls back when it has ended, before the calls that are open on it fail; at once if it has ended already. */
  whenEnded(callback: (problem: string) => void): void
}

export interface RestartingOptions<S> {
  readonly pace: RestartPace
  readonly clock: Clock
  readonly log: Logger
  /** Fields of each log line: model, version and instance. */
  readonly fields: LogFields
  /** Starts a further thread or process. @param signal - aborts when it is no longer wanted. */
  readonly start: (signal: AbortSignal) => Promise<S>
}

/**
 * The thread or process that an instance executes on. If it ends by itself another one is started after a wait that grows with
 * each end in a row; an attempt that fails is answered to those that wait for it, and the next one follows.
 */
export class Restarting<S extends Endable> {
  readonly #options: RestartingOptions<S>
  readonly #closing = new AbortController()
  /** The thread or process that lives; undefined while none does, and from `close` on. A field, because each request reads it. */
  live: S | undefined
  #next: Promise<S>
  #failures = 0

  constructor(o: RestartingOptions<S>, first: S) {
    this.#options = o
    this.#next = Promise.resolve(first)
    this.#adopt(first)
  }

  /** Waits for the thread or process that lives or comes next. @throws ServeError ENGINE_STOPPED if it does not start, or after `close`. */
  async next(): Promise<S> {
    this.#closing.signal.throwIfAborted()
    const session = await this.#next
    this.#closing.signal.throwIfAborted()
    return session
  }

  /** Stops restarting. @returns the thread or process that is left to be ended, if one lives. */
  async close(): Promise<S | undefined> {
    this.live = undefined
    this.#closing.abort(new ServeError('ENGINE_STOPPED', 'the model is being unloaded'))
    return await this.#next.catch(() => undefined)
  }

  #adopt(session: S): void {
    const { pace, clock } = this.#options
    const sinceMs = clock.now()
    if (!this.#closing.signal.aborted) this.live = session
    session.whenEnded((problem) => {
      this.live = undefined
      if (this.#closing.signal.aborted) return
      if (clock.now() - sinceMs >= pace.resetMs) this.#failures = 0
      this.#restart('instance ended, restarting', problem)
    })
  }

  #restart(message: string, problem: string): void {
    const { log, fields, pace } = this.#options
    const waitMs = Math.min(pace.longestMs, pace.firstMs * 2 ** Math.min(this.#failures, 30))
    log.warn(message, { ...fields, problem, restartInMs: waitMs })
    this.#failures += 1
    const next = this.#startAfter(waitMs)
    this.#next = next
    next.catch((error: unknown) => {
      if (this.#closing.signal.aborted) return
      this.#restart('instance did not start', ServeError.from(error).message)
    })
  }

  async #startAfter(waitMs: number): Promise<S> {
    const { clock, start } = this.#options
    const { signal } = this.#closing
    await sleep(waitMs, { clock, signal })
    try {
      const session = await start(signal)
      this.#adopt(session)
      return session
    } catch (error) {
      const { message } = ServeError.from(error)
      const problem = `the model cannot be started again: ${message}`
      throw new ServeError('ENGINE_STOPPED', problem, { cause: error })
    }
  }
}
