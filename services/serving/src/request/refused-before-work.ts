import type { Reason, ServeError } from '@tutti/errors'

/**
 * Reasons that say that a request never reached a model: Triton keeps these apart on streams (triton-semantics 9.12). INCOMPLETE_STRING
 * is none: not Triton's server finds it, but its backends.
 */
const BEFORE_WORK: ReadonlySet<Reason> = new Set<Reason>([
  'MODEL_NOT_FOUND',
  'MODEL_NOT_READY',
  'INVALID_VERSION',
  'INVALID_PARAMETER',
  'INVALID_REQUEST',
  'INVALID_TENSOR_DATA',
  'SHAPE_MISMATCH',
  'DATATYPE_MISMATCH',
  'MESSAGE_TOO_LARGE',
  'NOT_FOUND',
  'UNAUTHENTICATED',
  'ACCESS_DENIED',
  'QUOTA_EXCEEDED',
  'UNSUPPORTED',
  'OVERLOADED',
  'SERVER_NOT_READY',
])

/** True if the request was refused as it stood, before any model had it. */
export function isRefusedBeforeWork({ reason }: ServeError): boolean {
  return BEFORE_WORK.has(reason)
}
