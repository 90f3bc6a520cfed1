import { Worker } from 'node:worker_threads'
import { type CancelSignal, ServeError } from '@tutti/errors'
import type { Address } from './ort-library.ts'
import type { OrtSession } from './ort-session.ts'
import type { OpenedRun } from './session-parts.ts'
import {
  CALL,
  callAt,
  createMailbox,
  DONE,
  END_THREAD,
  POSTED,
  RING_CALLS,
  RUN,
  type RunThreadData,
} from './thread-mailbox.ts'

/** A call for a run thread. */
export interface ThreadCall {
  /** Index of the function in `THREAD_CALLS`. */
  readonly function: number
  readonly args: readonly Address[]
  /** Owner of the memory that the arguments point to: it stays referenced until the call is done. */
  readonly held: unknown
  /**
   * Called once the call is done.
   *
   * @param result - of the function; an error if the thread has ended, with `beginNs` and `endNs` 0.
   */
  done(result: number | ServeError, beginNs: number, endNs: number): void
}

// The module is not imported, so its name is not rewritten when this one is compiled.
const MODULE = new URL(
  `./run-thread.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`,
  import.meta.url,
)
/** A thread's JavaScript has nothing to keep. */
const LIMITS = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 1 }

/**
 * Thread for native calls, which it makes in order. libuv's threads serve files, names and keys, and are only four by default.
 */
export class RunThread {
  readonly #mailbox = createMailbox()
  readonly #worker: Worker
  readonly #onEnd: () => void
  /** Open calls; calls in the ring come first. */
  readonly #calls: ThreadCall[] = []
  #posted = 0
  #done = 0
  #isListening = false
  #problem = 'no error was reported'
  endError: ServeError | undefined

  /** Starts the thread. @param onEnd - called when the thread has ended and takes no further calls. */
  constructor(functions: readonly bigint[], onEnd: () => void, module = MODULE) {
    const workerData: RunThreadData = { memory: this.#mailbox.memory, functions }
    this.#onEnd = onEnd
    // No inherited flags: loaders of the host process have no business in the thread.
    this.#worker = new Worker(module, { workerData, execArgv: [], resourceLimits: LIMITS })
    this.#worker.on('error', (error) => (this.#problem = ServeError.from(error).message))
    this.#worker.once('exit', () => this.#ended())
  }

  /** Adds a call, which the thread makes after the earlier ones. */
  post(call: ThreadCall): void {
    if (this.endError !== undefined) return call.done(this.endError, 0, 0)
    this.#calls.push(call)
    this.#fill()
    this.#listen()
  }

  /** Ends the thread, which must have no open calls. It does not use `terminate`, since the thread may be in native code. */
  end(): void {
    this.#calls.push({ function: END_THREAD, args: [], held: undefined, done: () => {} })
    this.#fill()
  }

  /** Puts calls into the ring, as far as it has places. */
  #fill(): void {
    const { header, calls } = this.#mailbox
    let open = (this.#posted - this.#done) | 0
    const before = open
    for (; open < RING_CALLS && open < this.#calls.length; open += 1) {
      const call = this.#calls[open]
      if (call === undefined) break
      const at = callAt(this.#posted)
      calls[at + CALL.FUNCTION] = call.function
      for (let i = 0; i < call.args.length; i += 1) {
        calls[at + CALL.ARGUMENTS + i] = Number(call.args[i])
      }
      this.#posted = (this.#posted + 1) | 0
    }
    if (open === before) return
    Atomics.store(header, POSTED, this.#posted)
    Atomics.notify(header, POSTED)
  }

  /** Wakes when a call is done, or several. */
  #listen(): void {
    if (this.#isListening || this.#calls.length === 0) return
    this.#isListening = true
    const { value } = Atomics.waitAsync(this.#mailbox.header, DONE, this.#done)
    const wake = (): void => {
      this.#isListening = false
      this.#settle()
      this.#listen()
    }
    void Promise.resolve(value).then(wake)
  }

  #settle(): void {
    const { header, calls } = this.#mailbox
    while (this.#done !== Atomics.load(header, DONE)) {
      const at = callAt(this.#done)
      const [result = 0, beginNs = 0, endNs = 0] = calls.subarray(
        at + CALL.RESULT,
        at + CALL.NUMBERS,
      )
      this.#done = (this.#done + 1) | 0
      const call = this.#calls.shift()
      this.#fill()
      call?.done(result, beginNs, endNs)
    }
  }

  #ended(): void {
    this.#settle()
    this.endError = new ServeError('ENGINE_STOPPED', `the engine thread ended: ${this.#problem}`)
    Atomics.notify(this.#mailbox.header, DONE)
    this.#onEnd()
    for (const call of this.#calls.splice(0)) call.done(this.endError, 0, 0)
  }
}

/**
 * Run threads of an engine. An instance takes one while it runs, and a thread is started when none is idle. So there are at most
 * as many as instances of loaded models.
 */
export class RunThreads {
  readonly #functions: readonly bigint[]
  readonly #module: URL | undefined
  readonly #all = new Set<RunThread>()
  readonly #idle: RunThread[] = []
  #bound = 0

  /** Makes an empty pool. @param module - module that the threads execute, for tests. */
  constructor(functions: readonly bigint[], module?: URL) {
    this.#functions = functions
    this.#module = module
  }

  /** Changes the number of instances by `instances`, which may be negative. Idle threads beyond that number end. */
  resize(instances: number): void {
    this.#bound += instances
    while (this.#all.size > this.#bound) {
      const thread = this.#idle.pop()
      if (thread === undefined) return
      this.#end(thread)
    }
  }

  /** Takes an idle thread, or starts one. The thread used last comes first, because it is warm. */
  take(): RunThread {
    const idle = this.#idle.pop()
    if (idle !== undefined) return idle
    const forget = (): void => {
      this.#all.delete(thread)
      const at = this.#idle.indexOf(thread)
      if (at >= 0) this.#idle.splice(at, 1)
    }
    const thread: RunThread = new RunThread(this.#functions, forget, this.#module)
    this.#all.add(thread)
    return thread
  }

  /** Gives a thread back, which must have no open calls. Threads beyond the number of instances end. */
  give(thread: RunThread): void {
    if (thread.endError !== undefined) return
    if (this.#all.size > this.#bound) this.#end(thread)
    else this.#idle.push(thread)
  }

  #end(thread: RunThread): void {
    this.#all.delete(thread)
    thread.end()
  }
}

/** Thread of an instance, which takes one from the pool while it has runs. */
export class InstanceThread {
  /** Number of runs that are not over. */
  openRuns = 0
  readonly #session: OrtSession
  readonly #threads: RunThreads
  #thread: RunThread | undefined
  #whenIdle: (() => void) | undefined

  constructor(session: OrtSession, threads: RunThreads) {
    this.#session = session
    this.#threads = threads
  }

  /** Executes a run after the earlier ones. The run is ended once the signal aborts. */
  run(opened: OpenedRun, o: { readonly signal: CancelSignal }): void {
    const session = this.#session
    this.#thread ??= this.#threads.take()
    this.openRuns += 1
    const terminate = (): void => session.terminate(opened)
    // To ask for the signal makes one.
    const signal = session.pace.mayBeLong ? o.signal : undefined
    signal?.addEventListener('abort', terminate)
    const args = session.argumentsOf(opened)
    const done: ThreadCall['done'] = (result, beginNs, endNs) => {
      signal?.removeEventListener('abort', terminate)
      this.openRuns -= 1
      if (this.openRuns === 0) this.#giveThread()
      session.finish(opened, result, beginNs, endNs)
    }
    this.#thread.post({ function: RUN, args, held: opened, done })
  }

  /** Resolves when no run is open. The caller begins no further run. */
  idle(): Promise<void> {
    if (this.openRuns === 0) return Promise.resolve()
    return new Promise((resolve) => (this.#whenIdle = resolve))
  }

  #giveThread(): void {
    if (this.#thread !== undefined) this.#threads.give(this.#thread)
    this.#thread = undefined
    this.#whenIdle?.()
  }
}
