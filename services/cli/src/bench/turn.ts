import { setImmediate } from 'node:timers/promises'
import type { Clock } from '@tutti/chassis'
import type { Tally } from './tally.ts'

/** A span of time in which requests go to one target. */
export interface BenchTurn {
  /** Sends the request, and resolves when its answer has come. */
  readonly send: (signal: AbortSignal) => Promise<void>
  readonly tally: Tally
  /** Milliseconds in which requests are sent. The turn ends with the last answer after them, or when `signal` aborts. */
  readonly durationMs: number
  readonly clock: Clock
  /** Signal that ends the turn at once and aborts the requests in flight. */
  readonly signal: AbortSignal
}

/**
 * Sends one request, and counts its answer or failure in the tally. It never throws.
 *
 * @param dueAt - time at which the request was due, by the turn's clock in milliseconds.
 */
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

/** Runs `concurrency` callers for a turn. Each caller sends its next request when it has its answer. */
export async function runClosedLoop(turn: BenchTurn, concurrency: number): Promise<void> {
  const { clock, durationMs, signal } = turn
  const endAt = clock.now() + durationMs
  const call = async (): Promise<void> => {
    do await attempt(turn, clock.now())
    while (clock.now() < endAt && !signal.aborted)
  }
  await Promise.all(Array.from({ length: concurrency }, call))
}
