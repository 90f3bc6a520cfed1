import {
  type ErrorDetails,
  REASONS,
  type Reason,
  ServeError,
  STATUS_CODES,
  type StatusCode,
} from '@tutti/errors'
import { capText, utf8Length } from '../status/cap-text.ts'
import { DETAIL_KEYS } from '../status/grpc-status.ts'
import type { WireError } from './message.ts'
import type { MemberMessageReader, MemberMessageWriter } from './message-bytes.ts'

/** A long traceback passes whole; what is longer would not fit beside the rest of a header. */
const MESSAGE_BYTES = 64 * 1024
const DETAIL_BYTES = 4096
/** Details of an error: there are eight kinds, and newer members may know more. */
const DETAILS_BOUND = 64
const CODES = Object.keys(STATUS_CODES).filter((text): text is StatusCode =>
  Object.hasOwn(STATUS_CODES, text),
)

/** Converts an error for member messages. Texts over some KB are cut. Causes and stacks are left out. */
export function toWireError(error: ServeError): WireError {
  const details: Record<string, string> = {}
  for (const key of DETAIL_KEYS) {
    const value = error.details[key]
    if (value !== undefined) details[key] = capText(value, DETAIL_BYTES, utf8Length)
  }
  return {
    code: error.code,
    reason: error.reason,
    message: capText(error.message, MESSAGE_BYTES, utf8Length),
    details,
  }
}

/** Converts an error of a member message back. An unknown reason, of a newer member, becomes INTERNAL; code and text stay. */
export function fromWireError(error: WireError): ServeError {
  const details: Partial<Record<keyof ErrorDetails, string>> = {}
  for (const key of DETAIL_KEYS) {
    const value = Object.hasOwn(error.details, key) ? error.details[key] : undefined
    if (value !== undefined) details[key] = value
  }
  const reason = isReason(error.reason) ? error.reason : 'INTERNAL'
  return new ServeError(reason, error.message, { code: error.code, details })
}

function isReason(text: string): text is Reason {
  return Object.hasOwn(REASONS, text)
}

export function writeError(writer: MemberMessageWriter, error: WireError): void {
  writer.choice(CODES, error.code)
  writer.text(error.reason)
  writer.text(error.message)
  writer.list(Object.entries(error.details), DETAILS_BOUND, (_, [key, value]) => {
    writer.text(key)
    writer.text(value)
  })
}

export function readError(reader: MemberMessageReader): WireError {
  const code = reader.choice('error.code', CODES)
  const reason = reader.text('error.reason')
  const message = reader.text('error.message')
  const details = reader.list('error.details', DETAILS_BOUND, readDetail)
  // fromEntries defines own properties, so that the key `__proto__` does no harm.
  return { code, reason, message, details: Object.fromEntries(details) }
}

function readDetail(reader: MemberMessageReader): readonly [string, string] {
  return [reader.text('key'), reader.text('value')]
}
