import type { Clock, Logger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { Restarting } from '../restarting.ts'
import type { PackedRun } from './batch.ts'
import type { SessionPlan } from './session-contract.ts'
import { type RunReceiver, SessionHandle, type SessionReady } from './session-handle.ts'
import type { SlotPool } from './slot-pool.ts'

export interface SessionInstanceOptions {
  readonly plan: SessionPlan
  /** The module that the thread runs. */
  readonly threadModule: URL
  readonly pool: SlotPool
  readonly clock: Clock
  readonly log: Logger
  /** For log lines and errors. */
  readonly model: string
  readonly version: string
  readonly instance: number
}

const RESTART_PACE = { firstMs: 100, longestMs: 5000, resetMs: 30_000 }

/** One instance of a model. If its thread ends by itself, the runs on it fail and a new one is started. */
export class SessionInstance {
  readonly #session: Restarting<SessionHandle>
  /** What the session says of its outputs. */
  readonly outputs: SessionReady['outputs']

  private constructor(o: SessionInstanceOptions, first: SessionHandle, { outputs }: SessionReady) {
    this.outputs = outputs
    const { clock, log, model, version, instance } = o
    const start = async (): Promise<SessionHandle> => {
      const handle = new SessionHandle(o)
      await handle.started()
      return handle
    }
    const fields = { model, version, instance }
    this.#session = new Restarting({ pace: RESTART_PACE, clock, log, fields, start }, first)
  }

  /** @throws ServeError MODEL_LOAD_FAILED with the runtime's text if the session cannot be made. */
  static async start(options: SessionInstanceOptions): Promise<SessionInstance> {
    const handle = new SessionHandle(options)
    return new SessionInstance(options, handle, await handle.started())
  }

  /**
   * Executes a run after those that came before it.
   *
   * @param receiver - fails with ENGINE_FAILED and the runtime's text, or ENGINE_STOPPED if the thread ended.
   */
  run(packed: PackedRun, receiver: RunReceiver): void {
    const { live } = this.#session
    if (live !== undefined) live.run(packed, receiver)
    else {
      this.#session.next().then(
        (session) => session.run(packed, receiver),
        (error: unknown) => receiver.failed(ServeError.from(error)),
      )
    }
  }

  /** Ends the thread after the runs that it has. */
  async close(): Promise<void> {
    const session = await this.#session.close()
    await session?.stop()
  }
}
