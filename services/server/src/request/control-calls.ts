import type { IncomingHttpHeaders } from 'node:http'
import { ServeError } from '@tutti/errors'
import { type AccessLog, controlDenied } from '../access/access-log.ts'
import { addressOf, type CallerSocket } from '../access/caller.ts'
import type { InferenceBackend } from '../inference-backend.ts'
import type { ControlGuard } from './control-guard.ts'

/** A call that changes the server, or would if that were offered. */
export interface ControlCall {
  readonly action: 'load' | 'unload' | 'trace settings' | 'log settings'
  /** Absent for all models. */
  readonly model?: string | undefined
  readonly headers: IncomingHttpHeaders
  readonly socket: CallerSocket | undefined
  readonly backend: InferenceBackend
}

/** Lets those change the server who may, and notes who did or tried. */
export class ControlCalls {
  readonly #guard: ControlGuard
  readonly #log: AccessLog | undefined

  constructor(guard: ControlGuard, log: AccessLog | undefined) {
    this.#guard = guard
    this.#log = log
  }

  /** @throws ServeError for a caller that may not, else as `act` does. */
  async run<T>(call: ControlCall, act: () => T | Promise<T>): Promise<T> {
    const { identity } = call.backend
    const noted = { ...call, call: call.action, identity: identity?.name }
    try {
      if (identity?.mayControl === false) throw controlDenied(call.action, identity.name)
      this.#guard({ headers: call.headers, address: addressOf(call.socket) })
      const result = await act()
      this.#log?.controlled(noted)
      return result
    } catch (thrown) {
      const error = ServeError.from(thrown)
      this.#log?.controlled(noted, error)
      throw error
    }
  }
}
