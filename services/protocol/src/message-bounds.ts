import { ServeError } from '@tutti/errors'

/**
 * How many of each repeated thing one request may hold, in gRPC and in JSON. A two-byte entry of a message becomes an
 * object of some hundred bytes here, so a message within its size bound could otherwise take fifty times its size; and
 * inputs are compared with one another before anybody counts them.
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
