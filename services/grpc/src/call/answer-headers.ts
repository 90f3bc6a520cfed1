import type { ServeError } from '@tutti/errors'
import { encodeFields, type FieldBlock, type ServerStream } from '@tutti/http'
import { toGrpcStatus } from '@tutti/protocol'
import { ACCEPTED_ENCODINGS } from './inflate.ts'

const STATUS = [':status', '200'] as const
const CONTENT_TYPE = ['content-type', 'application/grpc+proto'] as const
const ACCEPTED = ['grpc-accept-encoding', ACCEPTED_ENCODINGS] as const

/** The headers that an answer begins with. */
export const ANSWER_HEADERS = encodeFields([STATUS, CONTENT_TYPE, ACCEPTED])
/** The trailers of an answer that went well. */
export const OK_TRAILERS = encodeFields([['grpc-status', '0']])
/** The headers of an answer to what is no gRPC. */
const NO_GRPC = encodeFields([[':status', '415']])

/** Encodes the headers of an answer whose messages are compressed. */
export function toCompressedHeaders(encoding: string): FieldBlock {
  return encodeFields([STATUS, CONTENT_TYPE, ACCEPTED, ['grpc-encoding', encoding]])
}

/** Encodes the trailers that carry an error: its gRPC status, message and details. */
export function toTrailers(error: ServeError): FieldBlock {
  return encodeFields(toFields(error))
}

/** Answers a stream with trailers only, even if its request is half read. Does nothing once an answer has begun. */
export function respondOnlyTrailers(stream: ServerStream, error: ServeError): void {
  if (!stream.hasResponded) stream.end(encodeFields([STATUS, CONTENT_TYPE, ...toFields(error)]))
}

/** Answers a stream that is no gRPC call with the HTTP status 415. */
export function respondNoGrpc(stream: ServerStream): void {
  stream.end(NO_GRPC)
}

function toFields(error: ServeError): (readonly [string, string])[] {
  const { code, details, trailers } = toGrpcStatus(error)
  return [['grpc-status', String(code)], ['grpc-message', encodeURI(details)], ...trailers]
}
