import { Metadata } from '@grpc/grpc-js'
import type { ServeError } from '@tutti/errors'
import { toGrpcStatus } from '../status/grpc-status.ts'

/** Makes the error that grpc-js gives a client when our server ends its call with `error`. */
export function toServiceError(error: ServeError): {
  readonly code: number
  readonly details: string
  readonly metadata: Metadata
} {
  const { code, details, trailers } = toGrpcStatus(error)
  return { code, details, metadata: Metadata.fromHttp2Headers(Object.fromEntries(trailers)) }
}
