export type { CancelSignal } from './cancel-signal.ts'
export { STATUS_CODES, type StatusCode } from './codes.ts'
export { REASONS, type Reason } from './reasons.ts'
export { assert, type ErrorDetails, ServeError, type ServeErrorOptions } from './serve-error.ts'
