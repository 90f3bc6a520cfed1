import { ServeError } from '@tutti/errors'
import type { ServerStream } from '@tutti/http2'

/** Bytes of the headers of one call, as gRPC's own servers take: calls that only wait keep them. */
export const MAX_HEADER_BYTES = 8192

/**
 * The error for a call with larger headers. Of clients that have confirmed this setting of ours, the connection resets such calls; of
 * others it takes 64 KiB.
 */
export function tooLargeHeaders({ headerBytes }: ServerStream): ServeError {
  const text = `call has ${headerBytes} bytes of headers, want at most ${MAX_HEADER_BYTES}`
  return new ServeError('MESSAGE_TOO_LARGE', text)
}
