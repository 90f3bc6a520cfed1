import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { ServeError } from '@tutti/errors'
import type { Caller } from '../access/caller.ts'

/** Of one call, as gRPC's own servers take: calls that only wait keep them. */
export const MAX_HEADER_BYTES = 8192
/** What each counts beside name and value. @see RFC 9113, 6.5.2 */
const FIELD_BYTES = 32

/**
 * Node refuses larger headers, but only of clients that have confirmed this setting of ours: of others it takes 64 KiB, for as long as
 * they like.
 *
 * @throws ServeError MESSAGE_TOO_LARGE
 */
export function checkHeaders(headers: IncomingHttpHeaders): void {
  let bytes = 0
  for (const [name, value] of Object.entries(headers)) {
    bytes += FIELD_BYTES + name.length + String(value).length
  }
  if (bytes <= MAX_HEADER_BYTES) return
  const text = `call has ${bytes} bytes of headers, want at most ${MAX_HEADER_BYTES}`
  throw new ServeError('MESSAGE_TOO_LARGE', text)
}

/** Who makes a call. */
export function toCaller(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Caller {
  return { headers, path: headers[':path'], socket: stream.session?.socket }
}
