import { Worker } from 'node:worker_threads'
import type { Clock, LogFields, Logger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { type Endable, Restarting } from '../restarting.ts'
import type { SessionPlan, SessionRun, SessionStarted } from './session-contract.ts'
import { SessionHandle, type SlotPool } from './slot.ts'

export interface SessionInstanceOptions {
  readonly plan: SessionPlan
  /** The module that the thread runs. */
  readonly threadModule: URL
  readonly pool: SlotPool
  readonly clock: Clock
  readonly log: Logger
  /** On each log line: model, version and instance. */
  readonly fields: LogFields
}

const RESTART_PACE = { firstMs: 100, longestMs: 5000, resetMs: 30_000 }

/** One session on one thread, until that ends. */
interface Session extends Endable {
  readonly handle: SessionHandle
  readonly ended: Promise<string>
}

/** One instance of a model. If its thread ends by itself, the runs on it fail and a new one is started. */
export class SessionInstance {
  readonly session: Restarting<Session>

  private constructor(o: SessionInstanceOptions, first: Session) {
    const { clock, log, fields } = o
    const start = (): Promise<Session> => startSession(o)
    this.session = new Restarting({ pace: RESTART_PACE, clock, log, fields, start }, first)
  }

  /** @throws ServeError MODEL_LOAD_FAILED with the runtime's text if the session cannot be made. */
  static async start(o: SessionInstanceOptions): Promise<SessionInstance> {
    return new SessionInstance(o, await startSession(o))
  }

  /** Executes a run on the next session, while none is live. */
  runLater(run: SessionRun): void {
    this.session.next().then(
      ({ handle }) => handle.run(run),
      (error: unknown) => run.done(ServeError.from(error)),
    )
  }

  /** Ends the thread after the runs that it has. */
  async close(): Promise<void> {
    const session = await this.session.close()
    session?.handle.stop()
    await session?.ended
  }
}

/** @throws ServeError MODEL_LOAD_FAILED with the runtime's text. */
async function startSession({
  plan,
  threadModule,
  pool,
}: SessionInstanceOptions): Promise<Session> {
  // Or the runtime stores a device id in the user's home, writes to /tmp, and reports its use to Microsoft.
  // oxlint-disable-next-line node/no-process-env -- its library reads it there, and threads cannot set it
  process.env['ORT_DISABLE_TELEMETRY'] ??= '1'
  // No inherited flags: loaders of the host process have no business in the thread.
  const thread = new Worker(threadModule, { workerData: plan, execArgv: [] })
  let handle: SessionHandle | undefined
  let onEnd: ((problem: string) => void) | undefined
  let problem = 'no error was reported'
  thread.on('error', (error) => (problem = ServeError.from(error).message))
  const ended = new Promise<string>((resolve) => {
    thread.once('exit', () => {
      onEnd?.(problem)
      handle?.fail(new ServeError('ENGINE_STOPPED', `the engine thread ended: ${problem}`))
      resolve(problem)
    })
  })
  const first = new Promise<SessionStarted>((resolve) => thread.once('message', resolve))
  const failed = ended.then((text): SessionStarted => ({ problem: text }))
  const started = await Promise.race([first, failed])
  if (started.problem !== undefined) {
    await ended
    throw new ServeError('MODEL_LOAD_FAILED', started.problem)
  }
  handle = new SessionHandle(thread, plan.outputs, pool)
  return { handle, ended, whenEnded: (callback) => (onEnd = callback) }
}
