import { constants, type OutgoingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import type { ServeError } from '@tutti/errors'
import { toGrpcStatus } from '@tutti/protocol'
import { ACCEPTED_ENCODINGS } from './inflate.ts'

const CONTENT_TYPE = 'application/grpc+proto'

/** What an answer begins with: a list of names and values, which Node takes without copying and sorting them first. */
export const ANSWER_HEADERS = [
  ':status',
  '200',
  'content-type',
  CONTENT_TYPE,
  'grpc-accept-encoding',
  ACCEPTED_ENCODINGS,
] as const

/** What an answer that went well ends with. */
export const OK_TRAILERS: OutgoingHttpHeaders = { 'grpc-status': '0' }

/** The trailers that carry an error. */
export function toTrailers(error: ServeError): OutgoingHttpHeaders {
  const { code, details, metadata } = toGrpcStatus(error)
  return {
    'grpc-status': code,
    'grpc-message': encodeURI(details),
    ...metadata.toHttp2Headers(),
  }
}

/** Answers a stream with nothing but trailers, wherever it stands: half read, too. Nothing happens if its client is gone. */
export function respondOnlyTrailers(stream: ServerHttp2Stream, error: ServeError): void {
  respondOnly(stream, { ':status': 200, 'content-type': CONTENT_TYPE, ...toTrailers(error) })
}

/** Answers a stream that is no gRPC call as HTTP says. */
export function respondNoGrpc(stream: ServerHttp2Stream): void {
  respondOnly(stream, { ':status': 415 })
}

function respondOnly(stream: ServerHttp2Stream, headers: OutgoingHttpHeaders): void {
  if (stream.destroyed || stream.closed || stream.headersSent) return
  stream.respond(headers, { endStream: true })
  // A reset without error after a whole answer tells the client to stop sending (RFC 9113, 8.1). Else a client that does not end
  // its stream would hold it for as long as it likes.
  stream.close(constants.NGHTTP2_NO_ERROR)
}
