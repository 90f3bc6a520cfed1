import { ServeError } from '@tutti/errors'

/**
 * How many of each repeated thing one request may hold, in gRPC and in JSON. A two-byte entry of a message becomes an
 * object of some hundred bytes here, so a message within its size bound could otherwise take fifty times its size; and
 * inputs are compared with one another before they are counted.
 */
export const MESSAGE_BOUNDS = {
  inputs: 4096,
  outputs: 4096,
  rawContents: 4096,
  rank: 1024,
  parameters: 4096,
} as const

/** The error for a message that holds more of something than MESSAGE_BOUNDS allows. */
export function tooMany(what: keyof typeof MESSAGE_BOUNDS): ServeError {
  return new ServeError(
    'MESSAGE_TOO_LARGE',
    `message has more than ${MESSAGE_BOUNDS[what]} entries of ${what}`,
  )
}

/** Triton's bound for a correlation id that is a string (triton-semantics 9.11). */
const MAX_CORRELATION_ID = 128

/** Takes a correlation id that is a string. @throws ServeError INVALID_PARAMETER if it is too long. */
export function toCorrelationText(text: string): string {
  if (text.length <= MAX_CORRELATION_ID) return text
  throw new ServeError(
    'INVALID_PARAMETER',
    `string correlation ID is ${text.length} characters long, want at most ${MAX_CORRELATION_ID}`,
    { code: 'UNIMPLEMENTED', details: { field: 'parameters.sequence_id' } },
  )
}
