import type { Clock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { PackedRun } from './batch.ts'
import type { SessionPlan } from './session-contract.ts'
import { type RunReceiver, SessionHandle, type SessionReady } from './session-handle.ts'
import type { SlotPool } from './slot-pool.ts'

/** Where restarts are reported. */
export interface EngineLog {
  info(message: string, fields: Readonly<Record<string, unknown>>): void
  warn(message: string, fields: Readonly<Record<string, unknown>>): void
}

export interface SessionInstanceOptions {
  readonly plan: SessionPlan
  /** The module that the thread runs. */
  readonly threadModule: URL
  readonly pool: SlotPool
  readonly clock: Clock
  readonly log: EngineLog
  /** For log lines and errors. */
  readonly model: string
  readonly version: string
  readonly instance: number
}

/** Waits between attempts to start a thread that has ended by itself: doubled from the first to the longest. */
const FIRST_RESTART_MS = 100
const LONGEST_RESTART_MS = 5000

/**
 * One instance of a model. If its thread ends by itself, the runs on it fail and a new one is started, at once and then with
 * growing waits; meanwhile runs wait for the attempt that is under way.
 */
export class SessionInstance {
  readonly #options: SessionInstanceOptions
  #session: Promise<SessionHandle>
  /** The same session once it has started, so that runs need not wait for a promise. */
  #ready: SessionHandle | undefined
  #isClosing = false
  #restartMs = 0
  #cancelTimer: (() => void) | undefined
  #endWait: (() => void) | undefined

  private constructor(options: SessionInstanceOptions, first: SessionHandle) {
    this.#options = options
    this.#session = Promise.resolve(first)
    this.#watch(first)
  }

  /** @throws ServeError MODEL_LOAD_FAILED with the runtime's text if the session cannot be made. */
  static async start(
    options: SessionInstanceOptions,
  ): Promise<{ instance: SessionInstance; started: SessionReady }> {
    const handle = new SessionHandle(options)
    const started = await handle.started()
    return { instance: new SessionInstance(options, handle), started }
  }

  /**
   * Executes a run after those that came before it.
   *
   * @param receiver - fails with ENGINE_FAILED and the runtime's text, or ENGINE_STOPPED if the thread ended.
   */
  run(packed: PackedRun, receiver: RunReceiver): void {
    if (this.#isClosing) receiver.failed(closingError())
    else if (this.#ready === undefined) void this.#runLater(packed, receiver)
    else this.#ready.run(packed, receiver)
  }

  /** Ends the thread after the runs that it has. */
  async close(): Promise<void> {
    this.#isClosing = true
    this.#cancelTimer?.()
    this.#endWait?.()
    const session = await this.#session.catch(() => undefined)
    await session?.stop()
  }

  async #runLater(packed: PackedRun, receiver: RunReceiver): Promise<void> {
    let session: SessionHandle
    try {
      session = await this.#session
    } catch (error) {
      receiver.failed(ServeError.from(error))
      return
    }
    if (this.#isClosing) receiver.failed(closingError())
    else session.run(packed, receiver)
  }

  #watch(session: SessionHandle): void {
    this.#ready = session
    session.whenEnded((problem) => {
      this.#ready = undefined
      if (this.#isClosing) return
      if (session.hasReplied) this.#restartMs = 0
      this.#log('engine thread ended, restarting', problem)
      this.#restart()
    })
  }

  #restart(): void {
    const session = this.#startAgain()
    this.#session = session
    // An attempt that fails is answered to whoever waits for it; the next one follows here.
    session.catch((error: unknown) => {
      if (this.#isClosing) return
      this.#log('engine thread did not start', ServeError.from(error).message)
      this.#restart()
    })
  }

  async #startAgain(): Promise<SessionHandle> {
    await this.#wait(this.#restartMs)
    this.#restartMs = Math.min(Math.max(FIRST_RESTART_MS, this.#restartMs * 2), LONGEST_RESTART_MS)
    if (this.#isClosing) throw closingError()
    const handle = new SessionHandle(this.#options)
    try {
      await handle.started()
    } catch (error) {
      const { message } = ServeError.from(error)
      throw new ServeError('ENGINE_STOPPED', `the engine cannot be restarted: ${message}`, {
        cause: error,
      })
    }
    this.#watch(handle)
    return handle
  }

  async #wait(delayMs: number): Promise<void> {
    if (delayMs === 0) return
    await new Promise<void>((resolve) => {
      this.#endWait = resolve
      this.#cancelTimer = this.#options.clock.setTimer(delayMs, resolve)
    })
  }

  #log(message: string, problem: string): void {
    const { model, version, instance, log } = this.#options
    log.warn(message, { model, version, instance, problem, restartInMs: this.#restartMs })
  }
}

function closingError(): ServeError {
  return new ServeError('ENGINE_STOPPED', 'the model is being unloaded')
}
