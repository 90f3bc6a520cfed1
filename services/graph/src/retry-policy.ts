import type { Reason, ServeError } from '@tutti/errors'
import type { CallRules, StepRetry } from './call-rules.ts'

/**
 * Wait before the second and the third attempt, the last: enough for a replica that goes and one that was about to.
 */
const DELAYS_MS = [0, 10] as const

/** Waits of a step's own rule grow up to this time, or stay at its `backoff` if that is longer. */
const LONGEST_DELAY_MS = 1000

/** Reasons of failures where another replica, or the same one a moment later, may well answer. Full queues are not among them. */
const RETRYABLE: ReadonlySet<Reason> = new Set<Reason>([
  'STEP_UNAVAILABLE',
  'REVISION_GONE',
  'ENGINE_STOPPED',
  'MODEL_NOT_READY',
  'SERVER_NOT_READY',
  'SERVER_STOPPING',
])

/** Reasons by which a queue refuses a request before it executes, in Triton with the code UNAVAILABLE. A rule names them as RESOURCE_EXHAUSTED. */
const QUEUED: ReadonlySet<Reason> = new Set<Reason>(['QUEUE_FULL', 'QUEUE_TIMEOUT'])

type RetryRules = Pick<CallRules, 'retry' | 'mayRunTwice'>

/** An attempt that failed. */
interface FailedAttempt {
  readonly error: ServeError
  /** 'no' if the failed attempt certainly did not execute. */
  readonly executed: 'no' | 'maybe'
  /** True if the step sent a response: then it has executed, whatever the failure says. */
  readonly hasResponded: boolean
  /** Attempts made so far, with the failed one. */
  readonly tries: number
}

/**
 * Decides whether a failed attempt is followed by another.
 *
 * @param rules - of the step's call.
 * @param random - draws a number from 0 up to, but not including, 1.
 * @returns milliseconds to wait, 0 for at once; undefined if the failure is final.
 */
export function retryDelayMs(
  failed: FailedAttempt,
  rules: RetryRules = {},
  random: () => number = Math.random,
): number | undefined {
  const { error, executed, hasResponded, tries } = failed
  // Wrappers around a call leave alone what was tried again within it.
  if (hasResponded || error.wasRetried) return undefined
  const isTransient = executed === 'no' && RETRYABLE.has(error.reason)
  const { retry } = rules
  if (retry === undefined) return isTransient ? DELAYS_MS[tries - 1] : undefined
  if (tries > retry.maxRetries) return undefined
  return isTransient || isWanted(failed, retry, rules)
    ? random() * longestMs(retry, tries)
    : undefined
}

function isWanted(failed: FailedAttempt, retry: StepRetry, { mayRunTwice }: RetryRules): boolean {
  return (mayRunTwice === true || cannotHaveRun(failed)) && isNamed(failed.error, retry)
}

function longestMs({ backoffMs }: StepRetry, tries: number): number {
  return Math.min(Math.max(backoffMs, LONGEST_DELAY_MS), backoffMs * 2 ** (tries - 1))
}

/** An error that names a step comes out of an Ensemble, of which other steps have run. */
function cannotHaveRun({ error, executed }: FailedAttempt): boolean {
  return executed === 'no' || (QUEUED.has(error.reason) && error.details.step === undefined)
}

function isNamed({ reason, code }: ServeError, { retryOn }: StepRetry): boolean {
  const named = QUEUED.has(reason) ? 'RESOURCE_EXHAUSTED' : code
  return retryOn.some((one) => one === named)
}
