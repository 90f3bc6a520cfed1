import type { Clock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { GrpcLog } from './log-events.ts'
import type { ServerCall } from './server-call.ts'

export interface WriteWatchOptions {
  readonly clock: Clock
  /** How long a client may take for an answer, or for the next response of a stream. */
  readonly timeoutMs: number
  readonly calls: Iterable<Pick<ServerCall, 'offeredAt' | 'cutOff'>>
  readonly log: Pick<GrpcLog, 'answerNotTaken'>
}

/**
 * Cuts off calls whose clients do not take their answers in time: a client with a flow-control window of 0 would hold an answer
 * for ever. One timer serves all calls, since small calls would pay for a timer each.
 *
 * @returns a function that ends the watch.
 */
export function watchWrites({ clock, timeoutMs, calls, log }: WriteWatchOptions): () => void {
  let stopTimer: () => void
  const check = (): void => {
    const now = clock.now()
    let oldest = now
    for (const call of calls) {
      const { offeredAt } = call
      if (offeredAt === undefined) continue
      if (now - offeredAt >= timeoutMs) {
        log.answerNotTaken(timeoutMs)
        const text = `the client did not take its answer within ${timeoutMs} ms`
        call.cutOff(new ServeError('CANCELLED', text))
      } else oldest = Math.min(oldest, offeredAt)
    }
    stopTimer = clock.setTimer(oldest + timeoutMs - now, check)
  }
  check()
  return () => stopTimer()
}
