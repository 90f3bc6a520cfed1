import type { Clock, Logger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { BatchOptions, EngineRequest, ExecutionTimes, ModelHost } from '../engine.ts'
import { loadTimeout } from '../load-timeout.ts'
import type { CustomMetrics } from '../model-metrics.ts'
import { Restarting } from '../restarting.ts'
import { HostCalls } from './host-calls.ts'
import { HostQuestions } from './host-questions.ts'
import type { ProcessTask } from './instance-process.ts'
import { InstanceSession } from './instance-session.ts'
import type { OpenExecution } from './open-execution.ts'
import type { ProcessGroup } from './process-group.ts'
import type { LineOrigin } from './process-output.ts'
import type { PythonSettings } from './python-settings.ts'
import type { SharedMemoryLike } from './shared-memory.ts'
import type { ForkedProcess } from './zygote.ts'

/** Options of a model's process. */
export interface SessionOptions {
  readonly origin: LineOrigin
  readonly task: ProcessTask
  readonly isDecoupled: boolean
  readonly settings: PythonSettings
  readonly memory: SharedMemoryLike | undefined
  readonly clock: Clock
  readonly log: Logger
  /** Group that gives the instance its process, and another one after a crash. */
  readonly processes: ProcessGroup
  /** Services that models may ask of the server; absent where they may ask nothing. */
  readonly host: ModelHost | undefined
  readonly metrics: CustomMetrics
  /** Called with what the load waits for, as in EngineOptions. */
  readonly report?: ((doing: string) => void) | undefined
  /** Time limit for a restart in milliseconds, as in EngineOptions; undefined for none. */
  readonly restartMs: number | undefined
}

/** Triton's limit for `is_ready`. */
const READINESS_MS = 5000

/**
 * Instance of a model. If its process ends by itself, open executions fail and another process is started. Meanwhile new
 * executions wait for the attempt that is under way.
 */
export class PythonInstance {
  readonly #options: SessionOptions
  readonly #session: Restarting<InstanceSession>
  /** True if the model reports its own readiness. */
  readonly reportsReadiness: boolean

  private constructor(o: SessionOptions, session: InstanceSession, reportsReadiness: boolean) {
    this.#options = o
    this.reportsReadiness = reportsReadiness
    const { clock, log, origin, settings } = o
    const pace = {
      firstMs: settings.restartFirstMs,
      longestMs: settings.restartLongestMs,
      resetMs: settings.restartResetMs,
    }
    const start = (signal: AbortSignal): Promise<InstanceSession> => startAgain(o, signal)
    this.#session = new Restarting({ pace, clock, log, fields: { ...origin }, start }, session)
  }

  /**
   * Starts an instance: gets a process and initializes the model.
   *
   * @param signal - as in EngineOptions.
   * @throws ServeError MODEL_LOAD_FAILED with the text of the model's exception, or an error that says why the process did not
   * start.
   */
  static async start(o: SessionOptions, signal?: AbortSignal): Promise<PythonInstance> {
    const [session, answer] = await startSession(o, signal)
    return new PythonInstance(o, session, answer['reports_readiness'] === true)
  }

  /** Executes on the live process, or on the next one. Resolves when all requests are answered and the model has returned. */
  execute(batch: readonly EngineRequest[], o: BatchOptions): Promise<ExecutionTimes> {
    const { live } = this.#session
    if (live !== undefined) return this.#run(live, batch, o)
    return this.#session.next().then(
      (session) => this.#run(session, batch, o),
      (error: unknown) => failAll(batch, ServeError.from(error)),
    )
  }

  /**
   * Asks a model that reports its own readiness whether it is ready. False while there is no process, or without an answer within
   * 5 s.
   */
  isReady(): Promise<boolean> {
    const { clock } = this.#options
    return new Promise((resolve) => {
      const stop = clock.setTimer(READINESS_MS, () => resolve(false))
      const asked = this.#session.live?.isReady() ?? Promise.resolve(false)
      void asked.then(resolve).finally(stop)
    })
  }

  /** Ends the process, and resolves when it has ended: another one is started. Nothing happens while there is none. */
  async replace(problem: string): Promise<void> {
    const process = this.#session.live?.process
    process?.kill(problem)
    await process?.ended
  }

  /** Ends the process after the model's `finalize`. A process that does not finalize in time is killed. */
  async close(): Promise<void> {
    const session = await this.#session.close()
    if (session === undefined) return
    const { clock, settings, log, origin } = this.#options
    const stop = clock.setTimer(settings.finalizeMs, () => {
      session.process.kill('it did not finalize in time')
    })
    const problem = await session.finalize()
    stop()
    if (problem !== undefined) log.error('finalize failed', { ...origin, problem })
  }

  #run(
    session: InstanceSession,
    batch: readonly EngineRequest[],
    o: BatchOptions,
  ): Promise<ExecutionTimes> {
    return new Promise((resolve) => {
      let stopTimer: (() => void) | undefined
      const onAbort = (): void => {
        batch.forEach((_, position) => session.cancel(execution, position))
        if (!execution.hasReturned) stopTimer = this.#limitAbandoned(session)
      }
      const execution: OpenExecution = session.execute(batch, {
        returned: () => {
          stopTimer?.()
          stopTimer = this.#limitUnanswered(session, execution)
          o.release?.()
        },
        ended: (times) => {
          o.signal.removeEventListener('abort', onAbort)
          stopTimer?.()
          // The process computes on while this one passes the responses on.
          o.release?.(times)
          resolve(times)
        },
      })
      o.onAbandon?.((position) => session.cancel(execution, position))
      if (o.signal.aborted) onAbort()
      else o.signal.addEventListener('abort', onAbort, { once: true })
    })
  }

  /**
   * Limits the time of requests without an answer: a model that keeps a request's sender and never answers must not keep the
   * caller. A model that streams may be silent.
   */
  #limitUnanswered(session: InstanceSession, execution: OpenExecution): (() => void) | undefined {
    const { clock, settings, isDecoupled, origin } = this.#options
    if (settings.unansweredMs === 0 || isDecoupled) return undefined
    const seconds = settings.unansweredMs / 1000
    return clock.setTimer(settings.unansweredMs, () => {
      execution.o.batch.forEach((_, position) => session.cancel(execution, position))
      const problem = `model '${origin.instance}' did not answer a request within ${seconds} s after 'execute' had returned`
      execution.fail(new ServeError('RESPONSE_INVALID', problem))
    })
  }

  /** Limits how much longer an execution may take for which no caller waits. */
  #limitAbandoned(session: InstanceSession): (() => void) | undefined {
    const { clock, settings } = this.#options
    if (settings.abandonedMs === 0) return undefined
    const seconds = settings.abandonedMs / 1000
    return clock.setTimer(settings.abandonedMs, () => {
      session.process.kill(`it still executed ${seconds} s after the last caller had left`)
    })
  }
}

/** Starts a process in place of one that has ended. */
async function startAgain(o: SessionOptions, signal: AbortSignal): Promise<InstanceSession> {
  const { clock, restartMs } = o
  if (restartMs === undefined) return (await startSession(o, signal))[0]
  const late = new AbortController()
  const stop = clock.setTimer(restartMs, () => late.abort(loadTimeout(restartMs)))
  try {
    return (await startSession(o, AbortSignal.any([signal, late.signal])))[0]
  } finally {
    stop()
  }
}

type StartedSession = readonly [InstanceSession, Readonly<Record<string, unknown>>]

/**
 * Gets a process and waits until its model is initialized.
 *
 * @param signal - aborts the load, which may take long.
 * @returns the session, and the answer of the process.
 */
export function startSession(o: SessionOptions, signal?: AbortSignal): Promise<StartedSession> {
  return o.processes.start((process) => loadSession(o, process, signal))
}

/** Loads a session. If this fails, the process has ended. */
async function loadSession(
  o: SessionOptions,
  process: ForkedProcess,
  signal: AbortSignal | undefined,
): Promise<StartedSession> {
  const { settings, clock, origin } = o
  o.report?.(`import of the model's file by ${origin.instance}`)
  const session = new InstanceSession({
    process,
    memory: o.memory,
    arenaBytes: settings.arenaBytes,
    idleBytes: settings.idleBytes,
    task: o.task,
    name: origin.instance,
    onInitialize: () => o.report?.(`initialize of ${origin.instance}`),
    isDecoupled: o.isDecoupled,
    takers: [
      new HostCalls({
        host: o.host,
        background: { model: origin.model, timeoutMs: settings.backgroundMs },
        backgroundCalls: settings.backgroundCalls,
      }),
      new HostQuestions({
        host: o.host,
        metrics: o.metrics.open(),
        log: o.log,
        origin,
        now: () => clock.now(),
      }),
    ],
  })
  const onAbort = (): void => session.process.kill(whyAborted(signal))
  if (signal?.aborted === true) onAbort()
  signal?.addEventListener('abort', onAbort)
  try {
    const answer = await session.process.ready()
    const { arena, problem } = answer
    if (o.memory !== undefined && arena !== true) {
      o.log.warn('memory is not shared with models', { ...origin, problem })
    }
    return [session, answer]
  } catch (error) {
    session.process.kill('it did not load')
    await session.process.ended
    throw error
  } finally {
    signal?.removeEventListener('abort', onAbort)
  }
}

function whyAborted(signal: AbortSignal | undefined): string {
  const reason: unknown = signal?.reason
  return reason instanceof ServeError ? reason.message : 'the model is being unloaded'
}

const NO_TIMES: ExecutionTimes = { computeInputNs: 0, computeInferNs: 0, computeOutputNs: 0 }

function failAll(batch: readonly EngineRequest[], error: ServeError): ExecutionTimes {
  for (const { sink } of batch) sink.fail(error, 'no')
  return NO_TIMES
}
