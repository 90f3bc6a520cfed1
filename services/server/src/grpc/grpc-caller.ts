import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import type { Caller } from '../access/caller.ts'

/** Who makes a call. */
export function toCaller(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Caller {
  return { headers, path: headers[':path'], socket: stream.session?.socket }
}
