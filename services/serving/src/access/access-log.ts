import type { BudgetKey, Logger } from '@tutti/chassis'
import { type Reason, ServeError } from '@tutti/errors'
import type { MetricFamily, MetricSeries } from '@tutti/telemetry'
import { addressOf, type Caller } from '../backend/caller.ts'

/** Why calls are refused for who makes them. */
const REFUSALS = [
  'UNAUTHENTICATED',
  'ACCESS_DENIED',
  'QUOTA_EXCEEDED',
  'FOREIGN_PAGE',
  'MODEL_CONTROL_REFUSED',
] as const satisfies readonly Reason[]

type Refusal = (typeof REFUSALS)[number]

function isRefusal(reason: Reason): reason is Refusal {
  return REFUSALS.some((one) => one === reason)
}

/** Source from which identities are configured. */
export type IdentitySource = 'file' | 'edge'

/** Counts of refused calls and of requests by identity, over all listeners of a process. */
export class AccessCounts {
  readonly #refused = new Map<Refusal, number>(REFUSALS.map((reason) => [reason, 0]))
  readonly #identities = new Map<IdentitySource, readonly string[]>()
  #requests = new Map<string, number>()

  /**
   * Sets the identities of a source. Each has a series, which begins at 0. Series of identities that no source has now vanish, so
   * that labels stay few.
   */
  follow(source: IdentitySource, identities: readonly string[]): void {
    this.#identities.set(source, identities)
    const names = [...this.#identities.values()].flat()
    this.#requests = new Map(names.map((name) => [name, this.#requests.get(name) ?? 0]))
  }

  refused(reason: Refusal): void {
    this.#refused.set(reason, (this.#refused.get(reason) ?? 0) + 1)
  }

  /** Counts a request of an identity, unless no source has the identity now. */
  request(identity: string): void {
    const count = this.#requests.get(identity)
    if (count !== undefined) this.#requests.set(identity, count + 1)
  }

  families(): readonly MetricFamily[] {
    return [
      {
        name: 'tutti_server_refused_calls_total',
        help: 'Number of calls that were refused for who made them',
        type: 'counter',
        series: toSeries('reason', this.#refused),
      },
      {
        name: 'tutti_server_identity_requests_total',
        help: 'Number of requests that were let in, by the identity of the caller',
        type: 'counter',
        series: toSeries('identity', this.#requests),
      },
    ]
  }
}

function toSeries(label: string, counts: ReadonlyMap<string, number>): readonly MetricSeries[] {
  return [...counts].map(([key, value]) => ({ labels: [[label, key]], value }))
}

/**
 * Names the budget of a line of the audit log: lines of one identity about one action share one. A line about a change of the
 * server has none, so it is never left out. Shared memory is an exception: a client can register it very often at little cost.
 */
export const auditBudget: BudgetKey = (message, { identity, call, outcome, wasLoaded }) => {
  if (message !== CONTROL_CALL) return `${message} ${String(identity)}`
  const isChange = outcome === OK && wasLoaded !== false && call !== 'shared memory'
  return isChange ? undefined : `${message} ${String(identity)} ${String(call)}`
}

const CONTROL_CALL = 'control call'
const OK = 'OK'

export interface AccessLogOptions {
  readonly counts: AccessCounts
  /** Logger of the audit log, bounded by `auditBudget` because clients cause its lines; absent: nothing is written. */
  readonly log?: Logger | undefined
}

/** A call as a line of the audit log describes it, without any header. */
export interface AuditedCall extends Pick<Caller, 'socket'> {
  /** Path without its query, or the action, such as `load`. */
  readonly call: string
  readonly identity: string | undefined
  readonly model?: string | undefined
  /** False for an unload that changed nothing. */
  readonly wasLoaded?: boolean | undefined
}

/** Tells who was refused, and who changed the server: the audit log of one listener, and its counts. */
export class AccessLog {
  readonly counts: AccessCounts
  readonly #log: Logger | undefined

  constructor({ counts, log }: AccessLogOptions) {
    this.counts = counts
    this.#log = log
  }

  /** Finds the rights of a caller. @throws ServeError UNAUTHENTICATED if there are none; counted and logged here. */
  identify<T>(caller: Caller, find: () => readonly T[]): readonly T[] {
    try {
      const found = find()
      if (found.length > 0) return found
      throw new ServeError('UNAUTHENTICATED', 'authorization: got no bearer token, want one')
    } catch (thrown) {
      const error = ServeError.from(thrown)
      this.refused(toAudited(caller, undefined, error), error)
      throw error
    }
  }

  /** Makes the error for a caller that may not change the server, and counts and logs it. */
  denied(caller: Caller, identity: string | undefined): ServeError {
    const { path = '' } = caller
    const action = path.slice(path.lastIndexOf('/') + 1)
    const error = controlDenied(action, identity)
    this.refused(toAudited(caller, identity, error), error)
    return error
  }

  refused(call: AuditedCall, error: ServeError): void {
    if (!isRefusal(error.reason)) return
    this.counts.refused(error.reason)
    this.#log?.info('call refused', { ...toFields(call), reason: error.reason })
  }

  /** Logs a call that changed the server, or tried to. @param error - absent: the call went well. */
  controlled(call: AuditedCall, error?: ServeError): void {
    if (error !== undefined && isRefusal(error.reason)) return this.refused(call, error)
    const { wasLoaded } = call
    const fields = { ...toFields(call), outcome: error?.reason ?? OK }
    this.#log?.info(CONTROL_CALL, wasLoaded === false ? { ...fields, wasLoaded } : fields)
  }
}

/** Makes the error ACCESS_DENIED for an identity without control. @param action - the action of its call, such as `load`. */
export function controlDenied(action: string, identity: string | undefined): ServeError {
  return new ServeError('ACCESS_DENIED', `identity '${identity}' may not call: ${action}`)
}

/** Describes a refused call for the audit log. */
export function toAudited(
  { path = '', socket }: Caller,
  identity: string | undefined,
  { details }: ServeError,
): AuditedCall {
  const [call = ''] = path.split('?', 1)
  return { call, identity, model: details.model, socket }
}

function toFields({ call, identity, model, socket }: AuditedCall) {
  return { audit: true, call, model, identity, address: addressOf(socket) }
}
