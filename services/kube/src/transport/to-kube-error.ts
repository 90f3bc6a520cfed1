import { STATUS_CODES } from 'node:http'
import { KubeError, type KubeErrorCause } from '../kube-error.ts'
import { isRecord } from '../parse-object.ts'

/** Content of an API server's answer to a failed request, if it is a metav1.Status as it should be. */
interface Status {
  readonly reason?: unknown
  readonly message?: unknown
  readonly code?: unknown
  readonly details?: { readonly causes?: unknown; readonly retryAfterSeconds?: unknown } | null
}

/** Characters that are shown of an answer: what stands before an API server (a proxy, say) may answer with any text. */
const SHOWN_CHARS = 200

/**
 * Builds the error for an answer of 400 or above.
 *
 * @param text - the body, which should be a metav1.Status in JSON.
 */
export function toKubeError(o: {
  readonly title: string
  readonly status: number
  readonly retryAfter: string | undefined
  readonly text: string
}): KubeError {
  const headerMs = parseRetryAfter(o.retryAfter)
  const body = parseStatus(o.text)
  if (body !== undefined) return fromStatus(body, o.status, headerMs)
  const shown = o.text.trim().slice(0, SHOWN_CHARS)
  return new KubeError({
    status: o.status,
    reason: reasonOf(o.status),
    message: `${o.title}: HTTP ${o.status}${shown === '' ? '' : `: ${shown}`}`,
    ...(headerMs === undefined ? {} : { retryAfterMs: headerMs }),
  })
}

/**
 * Converts a metav1.Status, from an answer or from a line of a watch, to an error.
 *
 * @param code - HTTP status for a Status without a code.
 * @param retryAfterMs - wait that the answer's header asks for, in milliseconds; it precedes that of the Status.
 */
export function fromStatus(body: unknown, code: number, retryAfterMs?: number): KubeError {
  const status: Status = isRecord(body) ? body : {}
  const seconds = status.details?.retryAfterSeconds
  const waitMs = retryAfterMs ?? (typeof seconds === 'number' ? seconds * 1000 : undefined)
  const number = typeof status.code === 'number' && status.code > 0 ? status.code : code
  return new KubeError({
    status: number,
    reason: toText(status.reason) ?? reasonOf(number),
    message: toText(status.message) ?? `the API server gave status ${number} and no message`,
    causes: toCauses(status.details?.causes),
    ...(waitMs === undefined ? {} : { retryAfterMs: waitMs }),
  })
}

/** Parses the wait, which API servers write in seconds. @returns milliseconds. */
function parseRetryAfter(text: string | undefined): number | undefined {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) * 1000 : undefined
}

/** Returns the reason of an answer that has none: HTTP's text for the status, written as one word. */
function reasonOf(status: number): string {
  return STATUS_CODES[status]?.replaceAll(' ', '') ?? 'Unknown'
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
