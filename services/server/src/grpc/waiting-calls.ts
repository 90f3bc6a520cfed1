import { ServeError } from '@tutti/errors'
import type { ServerCall } from './server-call.ts'

/** Calls of one server that may wait for their clients at the same time; each takes some 8 KiB. */
export const MAX_WAITING = 8192

/**
 * Ends the call that has waited longest for its client: to send, to end a stream, or to take an answer. To refuse the new one
 * instead would let clients that only open streams keep all others out.
 */
export function endLongestWaiting(calls: Set<ServerCall>): void {
  for (const call of calls) {
    // It is in work.
    if (call.ticket.hasPlace) continue
    // At once, so that the next look finds another one.
    calls.delete(call)
    const text = `server is overloaded: more than ${MAX_WAITING} calls wait for their clients, this one the longest`
    const error = new ServeError('OVERLOADED', text)
    if (call.stream.hasResponded) call.cutOff(error)
    else call.fail(error)
    return
  }
}
