import type { Reason, ServeError } from '@tutti/errors'

/**
 * Wait before the second and the third attempt, the last: enough for a replica that goes and one that was about to.
 */
const DELAYS_MS = [0, 10] as const

/** Reasons of failures where another replica, or the same one a moment later, may well answer. Full queues are not among them. */
const RETRYABLE: ReadonlySet<Reason> = new Set<Reason>([
  'STEP_UNAVAILABLE',
  'REVISION_GONE',
  'ENGINE_STOPPED',
  'MODEL_NOT_READY',
  'SERVER_NOT_READY',
  'SERVER_STOPPING',
])

/**
 * Decides whether a failed attempt is followed by another.
 *
 * @param o.executed - 'no' if the failed attempt certainly did not execute.
 * @param o.hasResponded - true if the step sent a response: then it has executed, whatever the failure says.
 * @param o.tries - attempts made so far, with the failed one.
 * @returns milliseconds to wait, 0 for at once; undefined if the failure is final.
 */
export function retryDelayMs(o: {
  readonly error: ServeError
  readonly executed: 'no' | 'maybe'
  readonly hasResponded: boolean
  readonly tries: number
}): number | undefined {
  if (o.executed !== 'no' || o.hasResponded) return undefined
  if (!RETRYABLE.has(o.error.reason)) return undefined
  return DELAYS_MS[o.tries - 1]
}
