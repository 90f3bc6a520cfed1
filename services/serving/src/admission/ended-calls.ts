import type { MetricFamily } from '@tutti/telemetry'
import { END_REASONS, type EndReason } from './admission-bounds.ts'

/** Counts of calls that were ended while they waited for their clients, by reason. */
export class EndedCalls {
  readonly #counts = new Map<EndReason, number>(END_REASONS.map((reason) => [reason, 0]))

  count(reason: EndReason): void {
    this.#counts.set(reason, (this.#counts.get(reason) ?? 0) + 1)
  }

  families(): readonly MetricFamily[] {
    return [
      {
        name: 'tutti_server_ended_calls_total',
        help: 'Number of calls that were ended because their clients held bytes and kept the server waiting',
        type: 'counter',
        series: [...this.#counts].map(([reason, value]) => ({
          labels: [['reason', reason]],
          value,
        })),
      },
    ]
  }
}
