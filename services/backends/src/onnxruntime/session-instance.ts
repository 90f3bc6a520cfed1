import { Worker } from 'node:worker_threads'
import type { Clock } from '@tutti/chassis'
import { assert, ServeError } from '@tutti/errors'
import {
  type SessionPlan,
  type SessionReply,
  type SessionStarted,
  STOP,
} from './session-contract.ts'

/** Where restarts are reported. */
export interface EngineLog {
  info(message: string, fields: Readonly<Record<string, unknown>>): void
  warn(message: string, fields: Readonly<Record<string, unknown>>): void
}

export interface SessionInstanceOptions {
  readonly plan: SessionPlan
  /** The module that the thread runs. */
  readonly threadModule: URL
  readonly clock: Clock
  readonly log: EngineLog
  /** For log lines and errors. */
  readonly model: string
  readonly version: string
  readonly instance: number
}

type Ready = Extract<SessionStarted, { readonly ready: true }>

/** Waits between attempts to start a thread that has ended by itself: doubled from the first to the longest. */
const FIRST_RESTART_MS = 100
const LONGEST_RESTART_MS = 5000

interface Pending {
  resolve(reply: readonly ArrayBuffer[]): void
  reject(error: ServeError): void
}

/** One session on one thread. Ends when the thread ends, by `stop` or by itself. */
class SessionHandle {
  readonly exited: Promise<string>
  readonly #thread: Worker
  #pending: Pending | undefined
  #problem = 'no error was reported'
  #hasEnded = false

  constructor(options: SessionInstanceOptions) {
    // No inherited flags: loaders of the host process have no business in the thread.
    this.#thread = new Worker(options.threadModule, { workerData: options.plan, execArgv: [] })
    this.#thread.on('error', (error) => {
      this.#problem = error instanceof Error ? error.message : String(error)
    })
    this.exited = new Promise((resolve) => {
      this.#thread.once('exit', () => {
        this.#hasEnded = true
        this.#pending?.reject(this.#ended())
        this.#pending = undefined
        resolve(this.#problem)
      })
    })
  }

  /** Resolves when the session is loaded. @throws ServeError MODEL_LOAD_FAILED with the runtime's text. */
  async started(): Promise<Ready> {
    const first = new Promise<SessionStarted>((resolve) => this.#thread.once('message', resolve))
    const ended = this.exited.then((problem) => ({ ready: false as const, problem }))
    const started = await Promise.race([first, ended])
    if (!started.ready) {
      await this.exited
      throw new ServeError('MODEL_LOAD_FAILED', started.problem)
    }
    this.#thread.on('message', (reply: SessionReply) => this.#settle(reply))
    return started
  }

  run(slot: ArrayBuffer): Promise<readonly ArrayBuffer[]> {
    assert(this.#pending === undefined, 'two executions at once on one instance')
    if (this.#hasEnded) return Promise.reject(this.#ended())
    return new Promise((resolve, reject) => {
      this.#pending = { resolve, reject }
      this.#thread.postMessage(slot, [slot])
    })
  }

  async stop(): Promise<void> {
    this.#thread.postMessage(STOP, [])
    await this.exited
  }

  #settle(reply: SessionReply): void {
    const pending = this.#pending
    this.#pending = undefined
    assert(pending !== undefined, 'a session replied to nothing')
    if (reply instanceof ArrayBuffer) pending.resolve([reply])
    else if ('problem' in reply) pending.reject(runtimeError(reply.problem))
    else pending.resolve(reply)
  }

  #ended(): ServeError {
    return new ServeError('ENGINE_STOPPED', `the engine thread ended: ${this.#problem}`)
  }
}

/**
 * ONNX Runtime's status codes by what its text says: the binding drops the number. 2 is INVALID_ARGUMENT, 6 an exception
 * in a kernel, 1 any other failure.
 */
function statusCode(text: string): number {
  if (/^(Got invalid dimensions|Invalid rank|Unexpected input data type)/.test(text)) return 2
  if (/Status Message: \/.*\.(cc|h):\d+/.test(text)) return 6
  return 1
}

function runtimeError(text: string): ServeError {
  return new ServeError('ENGINE_FAILED', `onnx runtime error ${statusCode(text)}: ${text}`)
}

/**
 * One instance of a model. If its thread ends by itself, the execution on it fails and a new one is started, at once and
 * then with growing waits; meanwhile executions wait for the attempt that is under way.
 */
export class SessionInstance {
  readonly #options: SessionInstanceOptions
  #session: Promise<SessionHandle>
  #isClosing = false
  #restartMs = 0
  #cancelTimer: (() => void) | undefined
  #endWait: (() => void) | undefined

  private constructor(options: SessionInstanceOptions, first: SessionHandle) {
    this.#options = options
    this.#session = Promise.resolve(first)
    void this.#watch(first)
  }

  /** @throws ServeError MODEL_LOAD_FAILED with the runtime's text if the session cannot be made. */
  static async start(
    options: SessionInstanceOptions,
  ): Promise<{ instance: SessionInstance; started: Ready }> {
    const handle = new SessionHandle(options)
    const started = await handle.started()
    return { instance: new SessionInstance(options, handle), started }
  }

  /**
   * Executes one slot, which is handed over and comes back as the first buffer of the reply.
   *
   * @throws ServeError ENGINE_FAILED with the runtime's text, or ENGINE_STOPPED if the thread ended.
   */
  async run(slot: ArrayBuffer): Promise<readonly ArrayBuffer[]> {
    const session = await this.#session
    if (this.#isClosing) throw new ServeError('ENGINE_STOPPED', 'the model is being unloaded')
    const reply = await session.run(slot)
    this.#restartMs = 0
    return reply
  }

  /** Ends the thread after the execution that is under way. */
  async close(): Promise<void> {
    this.#isClosing = true
    this.#cancelTimer?.()
    this.#endWait?.()
    const session = await this.#session.catch(() => undefined)
    await session?.stop()
  }

  async #watch(session: SessionHandle): Promise<void> {
    const problem = await session.exited
    if (this.#isClosing) return
    this.#log('engine thread ended, restarting', problem)
    this.#restart()
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
    if (this.#isClosing) throw new ServeError('ENGINE_STOPPED', 'the model is being unloaded')
    const handle = new SessionHandle(this.#options)
    try {
      await handle.started()
    } catch (error) {
      const { message } = ServeError.from(error)
      throw new ServeError('ENGINE_STOPPED', `the engine cannot be restarted: ${message}`, {
        cause: error,
      })
    }
    void this.#watch(handle)
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
