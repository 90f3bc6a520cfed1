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
  /** Name of the model; absent for all models. */
  readonly model?: string | undefined
  readonly headers: IncomingHttpHeaders
  readonly socket: CallerSocket | undefined
  readonly backend: InferenceBackend
}

export interface ControlCallsOptions {
  /** Check of the caller; absent: everybody may change the server. */
  readonly guardControl?: ControlGuard | undefined
  /** Audit log of the calls; absent: none. */
  readonly accessLog?: AccessLog | undefined
  /** Backend of all models, not only those of the caller. */
  readonly backend: Pick<InferenceBackend, 'resolve'>
}

/** Checks who may change the server, and logs who changed it or tried to. */
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
   * Checks a load or an unload before its message is read.
   *
   * @throws ServeError if the caller may not, or if the server refuses all; the audit log gets a line.
   */
  check(call: ControlCall): void {
    try {
      this.#checkCaller(call)
      requireControl(call.backend.control)
    } catch (thrown) {
      throw this.#failed(call, thrown)
    }
  }

  /** Checks another control call before its message is read. @throws ServeError for a caller that may not change the server. */
  checkCaller(call: ControlCall): void {
    try {
      this.#checkCaller(call)
    } catch (thrown) {
      throw this.#failed(call, thrown)
    }
  }

  /** Checks the caller, runs `act` and logs the call. @throws ServeError for a caller that may not, else as `act` does. */
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
