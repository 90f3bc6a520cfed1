import { ServeError } from './serve-error.ts'

/** Throws if an invariant of our own code is broken. The text starts with `bug: `. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new ServeError('INTERNAL', `bug: ${message}`)
}
