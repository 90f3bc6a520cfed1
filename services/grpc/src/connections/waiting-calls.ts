import { ServeError } from '@tutti/errors'
import type { EndedCalls } from '@tutti/serving'
import type { ServerCall } from '../call/server-call.ts'

/** Calls of one server that may wait for their clients at the same time; each takes some 8 KiB. */
export const MAX_WAITING = 8192

/**
 * Ends the oldest call that waits for its client, with OVERLOADED. Calls with a request in work go on. Refusing new calls instead
 * would let clients that only open streams keep all others out.
 */
export function endLongestWaiting(calls: readonly ServerCall[], ended: EndedCalls): void {
  let longest: ServerCall | undefined
  for (const call of calls) {
    if (call.number < (longest?.number ?? Infinity) && !call.ticket.hasPlace) longest = call
  }
  if (longest === undefined) return
  // So that the next look finds another one.
  longest.number = Infinity
  ended.count('calls')
  const text = `server is overloaded: more than ${MAX_WAITING} calls wait for their clients, this one the longest`
  const error = new ServeError('OVERLOADED', text)
  if (longest.stream.hasResponded) longest.cutOff(error)
  else longest.fail(error)
}
