import { constants, type ServerHttp2Stream } from 'node:http2'
import type { ServeError } from '@tutti/errors'
import { toGrpcStatus } from '@tutti/protocol'

/**
 * Ends a call with an error below grpc-js, wherever the call stands: before its message is read, too. Once this is done,
 * grpc-js sees a closed stream and stays silent. Nothing happens if an answer has begun or the client is gone.
 */
export function answerError(stream: ServerHttp2Stream, error: ServeError): void {
  if (stream.destroyed || stream.closed || stream.headersSent) return
  const { code, details, metadata } = toGrpcStatus(error)
  stream.respond(
    {
      ':status': 200,
      'content-type': 'application/grpc+proto',
      'grpc-status': code,
      'grpc-message': encodeURI(details),
      ...metadata.toHttp2Headers(),
    },
    { endStream: true },
  )
  // A reset without error after a whole answer tells the client to stop sending (RFC 9113, 8.1).
  stream.close(constants.NGHTTP2_NO_ERROR)
}
