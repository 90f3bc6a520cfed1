import { type ErrorInfo, inferenceServices } from '../services.ts'

const ERROR_INFO_URL = 'type.googleapis.com/google.rpc.ErrorInfo'
const HELP_URL = 'type.googleapis.com/google.rpc.Help'
const RETRY_INFO_URL = 'type.googleapis.com/google.rpc.RetryInfo'

const HELP_TEXT = 'What it means, and what to do'

/**
 * Encodes the google.rpc.Status of an error, the value of `grpc-status-details-bin`.
 *
 * @param o.help - an address, which becomes a google.rpc.Help; absent: there is none.
 * @param o.retryAfterMs - milliseconds, which become a google.rpc.RetryInfo; absent: there is none.
 */
export function encodeStatusDetails(
  code: number,
  message: string,
  info: ErrorInfo,
  o: { readonly help?: string; readonly retryAfterMs?: number | undefined } = {},
): Buffer {
  const {
    'google.rpc.Status': status,
    'google.rpc.ErrorInfo': errorInfo,
    ...more
  } = inferenceServices().statusMessages
  const details = [{ type_url: ERROR_INFO_URL, value: errorInfo.serialize(info) }]
  if (o.help !== undefined) {
    const links = [{ description: HELP_TEXT, url: o.help }]
    details.push({ type_url: HELP_URL, value: more['google.rpc.Help'].serialize({ links }) })
  }
  if (o.retryAfterMs !== undefined) {
    const ms = Math.ceil(o.retryAfterMs)
    const delay = { seconds: Math.floor(ms / 1000), nanos: (ms % 1000) * 1e6 }
    const value = more['google.rpc.RetryInfo'].serialize({ retry_delay: delay })
    details.push({ type_url: RETRY_INFO_URL, value })
  }
  return status.serialize({ code, message, details })
}

/** Decodes the ErrorInfo of a google.rpc.Status; undefined if it has none. @throws Error if the bytes are no such message. */
export function decodeErrorInfo(bytes: Buffer): ErrorInfo | undefined {
  const { 'google.rpc.Status': status, 'google.rpc.ErrorInfo': errorInfo } =
    inferenceServices().statusMessages
  const any = status.deserialize(bytes).details.find(({ type_url: url }) => url === ERROR_INFO_URL)
  return any === undefined ? undefined : errorInfo.deserialize(Buffer.from(any.value))
}
