/**
 * The error for a reconcile that cannot succeed until a watched object changes. It is logged, and the reconcile is not retried.
 */
export class TerminalError extends Error {
  override readonly name = 'TerminalError'
}
