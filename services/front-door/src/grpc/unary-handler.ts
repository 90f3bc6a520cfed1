import type { handleUnaryCall, ServerUnaryCall, sendUnaryData } from '@grpc/grpc-js'
import { ServeError } from '@tutti/errors'
import { toGrpcStatus } from '@tutti/protocol'
import type { LiveCall } from './live-call.ts'
import type { LiveCalls } from './live-calls.ts'
import type { GrpcLog } from './log-events.ts'

/** What every handler needs. */
export interface HandlerContext {
  readonly calls: LiveCalls
  readonly log: GrpcLog
}

/** Makes a handler of a function: its result or its error is the one answer of the call. */
export function unary<Request, Response>(
  { calls, log }: HandlerContext,
  answer: (request: Request, live: LiveCall) => Response | Promise<Response>,
): handleUnaryCall<Request, Response> {
  const run = async (
    call: ServerUnaryCall<Request, Response>,
    callback: sendUnaryData<Response>,
  ): Promise<void> => {
    const live = calls.of(call)
    try {
      const response = await answer(call.request, live)
      live.answered()
      callback(null, response)
    } catch (thrown) {
      const error = ServeError.from(thrown)
      log.callFailed(call.getPath(), error)
      live.answered()
      callback(toGrpcStatus(error))
    }
  }
  return (call, callback) => void run(call, callback)
}
