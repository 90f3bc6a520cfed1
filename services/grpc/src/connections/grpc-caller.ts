import { ServeError } from '@tutti/errors'
import type { ServerStream } from '@tutti/http'

/** Most bytes of the headers of one call, as in gRPC's own servers. Calls that wait keep their headers in memory. */
export const MAX_HEADER_BYTES = 8192

/**
 * Makes the error for a call with larger headers. Only calls of clients that have not confirmed this setting yet get it: HTTP/2
 * takes up to 64 KiB of headers from them, and resets such calls of other clients.
 */
export function tooLargeHeaders({ headerBytes }: ServerStream): ServeError {
  const text = `call has ${headerBytes} bytes of headers, want at most ${MAX_HEADER_BYTES}`
  return new ServeError('MESSAGE_TOO_LARGE', text)
}
