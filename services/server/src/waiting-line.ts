import { END_REASONS, type EndReason } from './admission-bounds.ts'
import type { AdmissionTicket } from './admission-ticket.ts'
import type { MetricFamily } from './metrics-text.ts'

/** The tickets whose clients are waited for, those first that have waited longest, and how many calls were ended for it. */
export class WaitingLine implements Iterable<AdmissionTicket> {
  readonly #ended = new Map<EndReason, number>(END_REASONS.map((reason) => [reason, 0]))
  #first: AdmissionTicket | undefined
  #last: AdmissionTicket | undefined;

  *[Symbol.iterator](): Iterator<AdmissionTicket> {
    let next = this.#first
    while (next !== undefined) {
      const ticket = next
      next = ticket.after
      yield ticket
    }
  }

  /** Puts a ticket at the end that is not in the line. */
  add(ticket: AdmissionTicket): void {
    ticket.before = this.#last
    if (this.#last === undefined) this.#first = ticket
    else this.#last.after = ticket
    this.#last = ticket
  }

  remove(ticket: AdmissionTicket): void {
    const { before, after } = ticket
    if (before === undefined) this.#first = after
    else before.after = after
    if (after === undefined) this.#last = before
    else after.before = before
    ticket.before = ticket.after = undefined
  }

  count(reason: EndReason): void {
    this.#ended.set(reason, (this.#ended.get(reason) ?? 0) + 1)
  }

  families(): readonly MetricFamily[] {
    return [
      {
        name: 'tutti_server_ended_calls_total',
        help: 'Number of calls that were ended because their clients held bytes and kept the server waiting',
        type: 'counter',
        series: [...this.#ended].map(([reason, value]) => ({
          labels: [['reason', reason]],
          value,
        })),
      },
    ]
  }
}
