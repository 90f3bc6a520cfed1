import { loadSync, type MessageTypeDefinition } from '@grpc/proto-loader'
import { PROTO_OPTIONS } from '../services.ts'

const ERROR_INFO_URL = 'type.googleapis.com/google.rpc.ErrorInfo'
const RETRY_INFO_URL = 'type.googleapis.com/google.rpc.RetryInfo'

/** A google.rpc.ErrorInfo. */
export interface ErrorInfo {
  readonly reason: string
  readonly domain: string
  readonly metadata: Readonly<Record<string, string>>
}

/** A google.rpc.Status, as proto-loader has it. */
interface Status {
  readonly code: number
  readonly message: string
  readonly details: readonly { readonly type_url: string; readonly value: Uint8Array }[]
}

/** A google.rpc.RetryInfo. */
interface RetryInfo {
  readonly retry_delay: { readonly seconds: number; readonly nanos: number }
}

interface Types {
  readonly 'google.rpc.RetryInfo': MessageTypeDefinition<RetryInfo, RetryInfo>
  readonly 'google.rpc.Status': MessageTypeDefinition<Status, Status>
  readonly 'google.rpc.ErrorInfo': MessageTypeDefinition<ErrorInfo, ErrorInfo>
}

let loaded: Types | undefined

function types(): Types {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the messages of the file just read
  loaded ??= loadSync('status_details.proto', PROTO_OPTIONS) as unknown as Types
  return loaded
}

/**
 * Encodes for `grpc-status-details-bin`.
 *
 * @param o.retryAfterMs - becomes a google.rpc.RetryInfo; absent: there is none.
 */
export function encodeStatusDetails(
  code: number,
  message: string,
  info: ErrorInfo,
  o: { readonly retryAfterMs?: number | undefined } = {},
): Buffer {
  const { 'google.rpc.Status': status, 'google.rpc.ErrorInfo': errorInfo, ...more } = types()
  const details = [{ type_url: ERROR_INFO_URL, value: errorInfo.serialize(info) }]
  if (o.retryAfterMs !== undefined) {
    const ms = Math.ceil(o.retryAfterMs)
    const delay = { seconds: Math.floor(ms / 1000), nanos: (ms % 1000) * 1e6 }
    const value = more['google.rpc.RetryInfo'].serialize({ retry_delay: delay })
    details.push({ type_url: RETRY_INFO_URL, value })
  }
  return status.serialize({ code, message, details })
}

/** The ErrorInfo of a google.rpc.Status; undefined if it has none. @throws Error if the bytes are no such message. */
export function decodeErrorInfo(bytes: Buffer): ErrorInfo | undefined {
  const { 'google.rpc.Status': status, 'google.rpc.ErrorInfo': errorInfo } = types()
  const any = status.deserialize(bytes).details.find(({ type_url: url }) => url === ERROR_INFO_URL)
  return any === undefined ? undefined : errorInfo.deserialize(Buffer.from(any.value))
}
