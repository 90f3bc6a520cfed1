import { ServeError } from './serve-error.ts'

/** The error for a broken invariant of our own code. The text starts with `bug: `. */
export function bug(message: string): ServeError {
  return new ServeError('INTERNAL', `bug: ${message}`)
}

/** Throws if an invariant is broken. On the path of a request `if (...) throw bug(...)` makes no text when all is well. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw bug(message)
}
