import { KubeError, type KubeErrorCause } from '../kube-error.ts'
import { isRecord } from '../parse-object.ts'

/** What an API server's answer to a failed request says, if it is a metav1.Status as it should be. */
interface Status {
  readonly reason?: unknown
  readonly message?: unknown
  readonly code?: unknown
  readonly details?: { readonly causes?: unknown; readonly retryAfterSeconds?: unknown } | null
}

/** What stands before an API server (a proxy, say) may answer with any text; so much of it is shown. */
const SHOWN_CHARS = 200

/**
 * The error for an answer of 400 or above.
 *
 * @param text - the body, which should be a metav1.Status in JSON.
 * @param epochMs - the time, for a Retry-After that is a date.
 */
export function toKubeError(o: {
  readonly title: string
  readonly status: number
  readonly retryAfter: string | undefined
  readonly text: string
  readonly epochMs: number
}): KubeError {
  const headerMs = parseRetryAfter(o.retryAfter, o.epochMs)
  const body = parseStatus(o.text)
  if (body !== undefined) return fromStatus(body, o.status, headerMs)
  const shown = o.text.trim().slice(0, SHOWN_CHARS)
  return new KubeError({
    status: o.status,
    reason: REASONS[o.status] ?? 'Unknown',
    message: `${o.title}: HTTP ${o.status}${shown === '' ? '' : `: ${shown}`}`,
    ...(headerMs === undefined ? {} : { retryAfterMs: headerMs }),
  })
}

/**
 * The error that a metav1.Status is, from an answer or from a line of a watch.
 *
 * @param code - if the status has none of its own.
 */
export function fromStatus(body: unknown, code: number, retryAfterMs?: number): KubeError {
  const status: Status = isRecord(body) ? body : {}
  const seconds = status.details?.retryAfterSeconds
  const waitMs = retryAfterMs ?? (typeof seconds === 'number' ? seconds * 1000 : undefined)
  const number = typeof status.code === 'number' && status.code > 0 ? status.code : code
  return new KubeError({
    status: number,
    reason: toText(status.reason) ?? REASONS[number] ?? 'Unknown',
    message: toText(status.message) ?? `the API server gave status ${number} and no message`,
    causes: toCauses(status.details?.causes),
    ...(waitMs === undefined ? {} : { retryAfterMs: waitMs }),
  })
}

/** @returns the wait in milliseconds, if it is a number of seconds or a date. */
export function parseRetryAfter(text: string | undefined, epochMs: number): number | undefined {
  if (text === undefined || text.trim() === '') return undefined
  const seconds = Number(text)
  const ms = Number.isNaN(seconds) ? Date.parse(text) - epochMs : seconds * 1000
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined
}

function parseStatus(text: string): Status | undefined {
  try {
    const body: unknown = JSON.parse(text)
    return isRecord(body) && body['kind'] === 'Status' ? body : undefined
  } catch {
    // Not from the API server itself.
    return undefined
  }
}

function toCauses(causes: unknown): KubeErrorCause[] {
  if (!Array.isArray(causes)) return []
  return causes.filter(isRecord).map((cause) => {
    const [reason, message, field] = [cause['reason'], cause['message'], cause['field']].map(toText)
    return {
      ...(reason === undefined ? {} : { reason }),
      ...(message === undefined ? {} : { message }),
      ...(field === undefined ? {} : { field }),
    }
  })
}

function toText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** metav1.StatusReason by code, for answers without one. */
const REASONS: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  409: 'Conflict',
  410: 'Gone',
  413: 'RequestEntityTooLarge',
  415: 'UnsupportedMediaType',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
}
