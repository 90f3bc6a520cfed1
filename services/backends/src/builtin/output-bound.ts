import { MAX_OUTPUT_BYTES } from '@tutti/builtins'
import { ServeError } from '@tutti/errors'

/** The outputs that a request would have, as far as they are counted. */
export interface CountedOutputs {
  /** Name of the built-in. */
  readonly builtin: string
  readonly bytes: number
  /** Present for a count that is a bound of the bytes. */
  readonly bound?: 'at least' | 'up to'
}

/** @throws ServeError MESSAGE_TOO_LARGE for outputs that are over the bound. */
export function checkOutputBytes({ builtin, bytes, bound }: CountedOutputs): void {
  if (bytes <= MAX_OUTPUT_BYTES) return
  const count = bound === undefined ? `${bytes}` : `${bound} ${bytes}`
  const text = `built-in ${builtin}: its outputs would have ${count} bytes, want at most ${MAX_OUTPUT_BYTES}`
  throw new ServeError('MESSAGE_TOO_LARGE', text)
}
