import type { IncomingHttpHeaders } from 'node:http'
import { ServeError } from '@tutti/errors'
import { type AccessLog, type AuditedCall, controlDenied } from '../access/access-log.ts'
import { addressOf, type CallerSocket } from '../backend/caller.ts'
import type { InferenceBackend } from '../backend/inference-backend.ts'
import type { ControlGuard } from './control-guard.ts'
import { requireControl } from './model-control.ts'

/** A call that changes the server, or would if that were offered. */
export interface ControlCall {
  readonly action: 'load' | 'unload' | 'trace settings' | 'log settings' | 'shared memory'
  /** Absent for all models. */
  readonly model?: string | undefined
  readonly headers: IncomingHttpHeaders
  readonly socket: CallerSocket | undefined
  readonly backend: InferenceBackend
}

export interface ControlCallsOptions {
  /** Absent: everybody may. */
  readonly guardControl?: ControlGuard | undefined
  /** Absent: nothing is noted. */
  readonly accessLog?: AccessLog | undefined
  /** Knows all models, not only those of the caller. */
  readonly backend: Pick<InferenceBackend, 'resolve'>
}

/** Lets those change the server who may, and notes who did or tried. */
export class ControlCalls {
  readonly #guard: ControlGuard
  readonly #log: AccessLog | undefined
  readonly #backend: Pick<InferenceBackend, 'resolve'>

  constructor(o: ControlCallsOptions) {
    this.#guard = o.guardControl ?? (() => {})
    this.#log = o.accessLog
    this.#backend = o.backend
  }

  /**
   * Before anything of a load or an unload is read.
   *
   * @throws ServeError if the caller is not allowed, or if the server refuses all; the audit log has a line of it.
   */
  check(call: ControlCall): void {
    try {
      this.#checkCaller(call)
      requireControl(call.backend.control)
    } catch (thrown) {
      throw this.#failed(call, thrown)
    }
  }

  /** Before anything of another call is read. @throws ServeError for a caller that may not change the server. */
  checkCaller(call: ControlCall): void {
    try {
      this.#checkCaller(call)
    } catch (thrown) {
      throw this.#failed(call, thrown)
    }
  }

  /** @throws ServeError for a caller that may not, else as `act` does. */
  async run<T>(call: ControlCall, act: () => T | Promise<T>): Promise<T> {
    try {
      this.#checkCaller(call)
      const wasLoaded = call.action === 'unload' ? this.#isLoaded(call.model) : undefined
      const result = await act()
      this.#log?.controlled({ ...toNoted(call), wasLoaded })
      return result
    } catch (thrown) {
      throw this.#failed(call, thrown)
    }
  }

  #isLoaded(model = ''): boolean {
    try {
      this.#backend.resolve(model, '')
      return true
    } catch {
      // Unknown or not ready: an unload takes nothing away.
      return false
    }
  }

  #checkCaller({ action, headers, socket, backend: { identity } }: ControlCall): void {
    if (identity?.mayControl === false) throw controlDenied(action, identity.name)
    this.#guard({ headers, address: addressOf(socket) })
  }

  #failed(call: ControlCall, thrown: unknown): ServeError {
    const error = ServeError.from(thrown)
    this.#log?.controlled(toNoted(call), error)
    return error
  }
}

function toNoted(call: ControlCall): AuditedCall {
  return { ...call, call: call.action, identity: call.backend.identity?.name }
}
