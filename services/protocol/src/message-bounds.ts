import { ServeError } from '@tutti/errors'
import type { WireReader } from '@tutti/formats'

/**
 * Most entries of each repeated part of one request, in gRPC and in JSON. A two-byte entry becomes an object of some hundred
 * bytes, so a message within its size bound could otherwise take fifty times its size. Inputs are also compared with one another
 * before they are counted.
 */
export const MESSAGE_BOUNDS = {
  inputs: 4096,
  outputs: 4096,
  rawContents: 4096,
  rank: 1024,
  parameters: 4096,
} as const

/**
 * Most fields of one request over gRPC, with those of its inputs, outputs and parameters and the extents of its shapes. Each
 * field, known or skipped, takes about 50 ns and at least two bytes.
 */
export const MAX_FIELDS = 2 ** 17

/**
 * Bytes of all keys and texts in the parameters of one request, those of its inputs and outputs too. No flag changes it: a router
 * sends them to a step in the header of one message, whose bound is little above it.
 */
const PARAMETER_BYTES = 512 * 1024

/** Bounds the bytes of keys and texts in the parameters of one request. It counts them before they are kept. */
export class ParameterBudget {
  #left: number

  /** @param bytes - Infinity where there is no bound. */
  constructor(bytes = PARAMETER_BYTES) {
    this.#left = bytes
  }

  /** Takes bytes from the budget. @throws ServeError MESSAGE_TOO_LARGE if fewer are left. */
  take(bytes: number): void {
    if (bytes > this.#left) throw tooLargeParameters()
    this.#left -= bytes
  }

  /** Reads a text value. Its length is checked before it is decoded. @throws ServeError MESSAGE_TOO_LARGE, MALFORMED_MESSAGE */
  text(reader: WireReader): string {
    const before = reader.textBytes
    const text = reader.text(this.#left, tooLargeParameters)
    this.take(reader.textBytes - before)
    return text
  }

  /** Reads a key. @throws ServeError MESSAGE_TOO_LARGE, MALFORMED_MESSAGE */
  key(reader: WireReader): string {
    const before = reader.textBytes
    const key = reader.text()
    this.take(reader.textBytes - before)
    return key
  }
}

function tooLargeParameters(): ServeError {
  const text = `keys and texts of the request's parameters take more than ${PARAMETER_BYTES} bytes; send such data as an input`
  return new ServeError('MESSAGE_TOO_LARGE', text, { details: { field: 'parameters' } })
}

/** Makes the error for a message with more of something than MESSAGE_BOUNDS allows. */
export function tooManyEntries(what: keyof typeof MESSAGE_BOUNDS): ServeError {
  return new ServeError(
    'MESSAGE_TOO_LARGE',
    `message has more than ${MESSAGE_BOUNDS[what]} entries of ${what}`,
  )
}

/** Bytes of the largest message that gRPC's framing and Triton's clients take. */
export const MAX_MESSAGE_BYTES = 2 ** 31 - 1

/** Makes the error for a message of ours that would be larger than MAX_MESSAGE_BYTES. */
export function tooLargeMessage(sizeBytes: number): ServeError {
  const text = `message has ${sizeBytes} bytes, want at most ${MAX_MESSAGE_BYTES}`
  return new ServeError('MESSAGE_TOO_LARGE', text)
}

/** Makes the error for a tensor's shape with an extent that is no exact integer. */
export function extentOutOfRange(tensor: string): ServeError {
  const text = `shape of tensor '${tensor}' has an extent out of range, want 0 to 2^53 - 1`
  return new ServeError('INVALID_REQUEST', text, { details: { field: `${tensor}.shape` } })
}

/** Triton's bound for a correlation id that is a string (triton-semantics 9.11). */
const MAX_CORRELATION_ID = 128

/** Checks a correlation id that is a string, and returns it. @throws ServeError INVALID_PARAMETER if it is too long. */
export function toCorrelationText(text: string): string {
  if (text.length <= MAX_CORRELATION_ID) return text
  throw new ServeError(
    'INVALID_PARAMETER',
    `string correlation ID is ${text.length} characters long, want at most ${MAX_CORRELATION_ID}`,
    { code: 'UNIMPLEMENTED', details: { field: 'parameters.sequence_id' } },
  )
}
