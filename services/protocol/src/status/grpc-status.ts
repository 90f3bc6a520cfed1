import type { Metadata } from '@grpc/grpc-js'
import {
  type ErrorDetails,
  helpAddress,
  isReason,
  type Reason,
  ServeError,
  STATUS_CODES,
  type StatusCode,
} from '@tutti/errors'
import type { ErrorInfo } from '../services.ts'
import { capText, percentEncodedLength, utf8Length } from './cap-text.ts'
import { decodeErrorInfo, encodeStatusDetails } from './status-details.ts'

/** The domain of our reasons in google.rpc.ErrorInfo. */
const ERROR_DOMAIN = 'tutti.dev'
export const STATUS_DETAILS_KEY = 'grpc-status-details-bin'
const PUSHBACK_KEY = 'grpc-retry-pushback-ms'

/*
 * gRPC's C core drops replies whose metadata passes 16 KiB and may from 8 KiB on. The text stands in two places,
 * percent-encoded and (base64) in the details, so these caps together stay under 8 KiB.
 */
const MESSAGE_BYTES = 3072
const DETAILS_MESSAGE_BYTES = 1024
const DETAIL_BYTES = 256

/** Status that ends a call with an error. */
export interface GrpcStatus {
  readonly code: number
  readonly details: string
  /** Trailers beside code and text, in their form on the wire: bytes as base64. */
  readonly trailers: readonly (readonly [name: string, value: string])[]
}

/** Names of the details that say where an error happened, in every encoding of errors. */
export const DETAIL_KEYS = [
  'ensemble',
  'step',
  'model',
  'version',
  'replica',
  'attempt',
  'field',
  'firstError',
] as const satisfies readonly (keyof ErrorDetails)[]

/** The reason of errors that other servers, proxies and the client library itself make. */
const REASON_OF_CODE: Readonly<Partial<Record<StatusCode, Reason>>> = {
  CANCELLED: 'CANCELLED',
  INVALID_ARGUMENT: 'INVALID_REQUEST',
  DEADLINE_EXCEEDED: 'DEADLINE_EXCEEDED',
  NOT_FOUND: 'NOT_FOUND',
  RESOURCE_EXHAUSTED: 'OVERLOADED',
  UNIMPLEMENTED: 'UNSUPPORTED',
  UNAVAILABLE: 'SERVER_NOT_READY',
}

function isStatusCode(text: string): text is StatusCode {
  return Object.hasOwn(STATUS_CODES, text)
}

const CODE_OF_NUMBER = new Map<number, StatusCode>(
  Object.keys(STATUS_CODES)
    .filter(isStatusCode)
    .map((code) => [STATUS_CODES[code], code]),
)

function errorInfo(error: ServeError): ErrorInfo {
  const metadata: Record<string, string> = {}
  for (const key of DETAIL_KEYS) {
    const value = error.details[key]
    if (value !== undefined) metadata[key] = capText(value, DETAIL_BYTES, utf8Length)
  }
  return { reason: error.reason, domain: ERROR_DOMAIN, metadata }
}

/**
 * Converts an error to a gRPC status: code, text, google.rpc.ErrorInfo with the reason and where it happened, and google.rpc.Help
 * with the address of its help page. Texts that would not fit into headers are cut; the log has them whole.
 */
export function toGrpcStatus(error: ServeError): GrpcStatus {
  const code = STATUS_CODES[error.code]
  const details = capText(error.message, MESSAGE_BYTES, percentEncodedLength)
  const { retryAfterMs } = error
  const bytes = encodeStatusDetails(
    code,
    capText(details, DETAILS_MESSAGE_BYTES, utf8Length),
    errorInfo(error),
    { help: helpAddress(error.reason), retryAfterMs },
  )
  const trailers: [string, string][] = [[STATUS_DETAILS_KEY, bytes.toString('base64')]]
  // Clients that try again by themselves wait so long (gRFC A6).
  if (retryAfterMs !== undefined) trailers.push([PUSHBACK_KEY, String(Math.ceil(retryAfterMs))])
  return { code, details, trailers }
}

function readInfo(metadata: Metadata | undefined): ErrorInfo | undefined {
  const [bytes] = metadata?.get(STATUS_DETAILS_KEY) ?? []
  if (!Buffer.isBuffer(bytes)) return undefined
  try {
    const info = decodeErrorInfo(bytes)
    return info?.domain === ERROR_DOMAIN ? info : undefined
  } catch {
    // Details that do not parse are another server's business; code and text say enough.
    return undefined
  }
}

function readDetails(info: ErrorInfo): ErrorDetails {
  const details: Partial<Record<keyof ErrorDetails, string>> = {}
  for (const key of DETAIL_KEYS) {
    const value = info.metadata[key]
    if (value !== undefined) details[key] = value
  }
  return details
}

/** Converts a gRPC status to an error, for our clients. A status of another origin gets the usual reason for its code. */
export function fromGrpcStatus(status: {
  readonly code: number
  readonly details: string
  readonly metadata?: Metadata
}): ServeError {
  const code = CODE_OF_NUMBER.get(status.code) ?? 'UNKNOWN'
  const info = readInfo(status.metadata)
  const reason = info !== undefined && isReason(info.reason) ? info.reason : undefined
  return new ServeError(reason ?? REASON_OF_CODE[code] ?? 'INTERNAL', status.details, {
    code,
    details: info === undefined ? {} : readDetails(info),
    cause: status,
  })
}
