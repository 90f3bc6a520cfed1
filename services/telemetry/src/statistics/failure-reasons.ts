import type { Reason, ServeError } from '@tutti/errors'

/** Triton's values of the failure metric's `reason` label. */
export const FAILURE_REASONS = ['REJECTED', 'CANCELED', 'BACKEND', 'OTHER'] as const

export type FailureReason = (typeof FAILURE_REASONS)[number]

const REASON_OF_FAILURE: Readonly<Partial<Record<Reason, FailureReason>>> = {
  QUEUE_FULL: 'REJECTED',
  QUEUE_TIMEOUT: 'REJECTED',
  OVERLOADED: 'REJECTED',
  CANCELLED: 'CANCELED',
  DEADLINE_EXCEEDED: 'CANCELED',
  ENGINE_FAILED: 'BACKEND',
  ENGINE_STOPPED: 'BACKEND',
  RESPONSE_INVALID: 'BACKEND',
}

/** Returns the failure metric's reason for an error of a model; an ensemble's own failures are always OTHER. */
export function toFailureReason(error: ServeError): FailureReason {
  return REASON_OF_FAILURE[error.reason] ?? 'OTHER'
}
