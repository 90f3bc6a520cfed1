import { ServeError } from './serve-error.ts'

/** Makes the error for a broken invariant of Tutti's own code. The text starts with `bug: `. */
export function bug(message: string): ServeError {
  return new ServeError('INTERNAL', `bug: ${message}`)
}

/**
 * Throws a ServeError INTERNAL if an invariant is broken. On the path of a request, `if (...) throw bug(...)` is cheaper: it
 * builds the text only if the invariant is broken.
 */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw bug(message)
}
