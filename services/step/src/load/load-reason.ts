import { ServeError, type StatusCode } from '@tutti/errors'

/** How Triton prints its status codes. gRPC codes that Triton lacks print in the same manner. */
const CODE_NAMES: Readonly<Record<StatusCode, string>> = {
  CANCELLED: 'Cancelled',
  UNKNOWN: 'Unknown',
  INVALID_ARGUMENT: 'Invalid argument',
  DEADLINE_EXCEEDED: 'Deadline exceeded',
  NOT_FOUND: 'Not found',
  ALREADY_EXISTS: 'Already exists',
  PERMISSION_DENIED: 'Permission denied',
  RESOURCE_EXHAUSTED: 'Resource exhausted',
  FAILED_PRECONDITION: 'Failed precondition',
  ABORTED: 'Aborted',
  OUT_OF_RANGE: 'Out of range',
  UNIMPLEMENTED: 'Unsupported',
  INTERNAL: 'Internal',
  UNAVAILABLE: 'Unavailable',
  DATA_LOSS: 'Data loss',
  UNAUTHENTICATED: 'Unauthenticated',
}

/** Why a version is UNAVAILABLE, as the repository index prints it: `<Code>: <text>` (triton-semantics 3.5). */
export function loadReason(error: unknown): string {
  const { code, message } = ServeError.from(error)
  return `${CODE_NAMES[code]}: ${message}`
}
