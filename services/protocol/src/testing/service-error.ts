import { Metadata } from '@grpc/grpc-js'
import type { ServeError } from '@tutti/errors'
import { toGrpcStatus } from '../status/grpc-status.ts'

/** The error that grpc-js makes of a call that our servers end with this one. */
export function toServiceError(error: ServeError): {
  readonly code: number
  readonly details: string
  readonly metadata: Metadata
} {
  const { code, details, trailers } = toGrpcStatus(error)
  return { code, details, metadata: Metadata.fromHttp2Headers(Object.fromEntries(trailers)) }
}
