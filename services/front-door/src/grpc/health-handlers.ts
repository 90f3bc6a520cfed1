import type { ServerWritableStream } from '@grpc/grpc-js'
import { ServeError } from '@tutti/errors'
import { toGrpcStatus } from '@tutti/protocol'
import { type HandlerContext, unary } from './unary-handler.ts'

/** `grpc.health.v1.Health`: the server as a whole, whatever service is named, as in Triton. */
export function healthHandlers(context: HandlerContext) {
  return {
    Check: unary(context, (_request, { backend }) => {
      const isServing = backend.isLive() && backend.isReady()
      return { status: isServing ? ('SERVING' as const) : ('NOT_SERVING' as const) }
    }),
    Watch: (call: ServerWritableStream<object, object>) => {
      const error = new ServeError('UNSUPPORTED', 'health Watch is not offered, use Check')
      context.calls.of(call).answered()
      call.emit('error', toGrpcStatus(error))
    },
  }
}
