/** A reconcile that cannot succeed until something changes that it watches: it is recorded, and not tried again. */
export class TerminalError extends Error {
  override readonly name = 'TerminalError'
}
