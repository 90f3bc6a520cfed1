import { ServeError } from '@tutti/errors'
import { type Handler, unary } from './method.ts'

/** `grpc.health.v1.Health`: the server as a whole, whatever service is named, as in Triton. */
export function healthHandlers(): Readonly<Record<string, Handler>> {
  return {
    Check: unary((_request, { backend }) => {
      const isServing = backend.isLive() && backend.isReady()
      return { status: isServing ? ('SERVING' as const) : ('NOT_SERVING' as const) }
    }),
    Watch: (call) =>
      call.refuse(new ServeError('UNSUPPORTED', 'health Watch is not offered, use Check')),
  }
}
