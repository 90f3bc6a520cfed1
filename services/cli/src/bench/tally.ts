import { ServeError } from '@tutti/errors'
import { LatencyHistogram } from './latency-histogram.ts'

/** Requests that failed for one reason. */
export interface Failures {
  readonly reason: string
  readonly count: number
  /** Message of the first failure. */
  readonly message: string
}

/** Counts the answers and failures of one target under one load, over all of its turns. */
export class Tally {
  readonly latencies = new LatencyHistogram()
  readonly #failures = new Map<string, { count: number; readonly message: string }>()
  /** Milliseconds in which requests were sent or waited for. */
  elapsedMs = 0
  /** Milliseconds of `elapsedMs` in which this thread computed. */
  busyMs = 0
  /** Requests without an answer when the user ended the run, or when the wait for the last answers was over. */
  unanswered = 0
  /** Requests of an open loop that were due and could not be sent. */
  unsent = 0
  /** True if an open loop reached its limit of requests in flight. */
  isFull = false

  /** Counts an answer. @param latencyMs - milliseconds since the request was due. */
  answered(latencyMs: number): void {
    this.latencies.record(latencyMs)
  }

  failed(error: unknown): void {
    const { reason, message } = ServeError.from(error)
    const known = this.#failures.get(reason)
    if (known === undefined) this.#failures.set(reason, { count: 1, message })
    else known.count += 1
  }

  /** Failures by reason, the most frequent first. */
  get failures(): readonly Failures[] {
    return [...this.#failures]
      .map(([reason, { count, message }]) => ({ reason, count, message }))
      .toSorted((a, b) => b.count - a.count)
  }

  get failedCount(): number {
    return [...this.#failures.values()].reduce((sum, { count }) => sum + count, 0)
  }
}
