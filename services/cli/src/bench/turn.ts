import { setImmediate } from 'node:timers/promises'
import type { Clock } from '@tutti/chassis'
import type { Tally } from './tally.ts'

/** A time in which requests go to one target. */
export interface BenchTurn {
  /** Sends the request, and ends with its answer. */
  readonly send: (signal: AbortSignal) => Promise<void>
  readonly tally: Tally
  /** Requests are sent for so long; then the turn ends with the last answer, or when `signal` gives it up. */
  readonly durationMs: number
  readonly clock: Clock
  /** Ends the turn at once: what is in flight is given up. */
  readonly signal: AbortSignal
}

/** Sends one request. It never throws: the tally has what came. @param dueAt - when it should have been sent. */
export async function attempt(
  { send, tally, clock, signal }: BenchTurn,
  dueAt: number,
): Promise<void> {
  try {
    await send(signal)
    tally.answered(clock.now() - dueAt)
  } catch (error) {
    if (signal.aborted) {
      tally.unanswered += 1
      return
    }
    tally.failed(error)
    // A client without a connection fails in the same turn of the event loop, and would never give it back.
    await setImmediate()
  }
}

/** A number of callers, each of which sends its next request when it has the answer to the one before. */
export async function runClosedLoop(turn: BenchTurn, concurrency: number): Promise<void> {
  const { clock, durationMs, signal } = turn
  const endAt = clock.now() + durationMs
  const call = async (): Promise<void> => {
    do await attempt(turn, clock.now())
    while (clock.now() < endAt && !signal.aborted)
  }
  await Promise.all(Array.from({ length: concurrency }, call))
}
