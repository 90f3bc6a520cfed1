import { ServeError } from '@tutti/errors'
import type { TransportEvents } from './log-events.ts'

/** A hostile member must not fill the log: one line in that time tells of all. */
const LOG_EVERY_MS = 10_000

/** Counts messages that are none of ours, damaged or foreign, and says so now and then. */
export class IgnoredMessages {
  readonly #events: TransportEvents
  #count = 0
  #loggedAt: number | undefined

  constructor(events: TransportEvents) {
    this.#events = events
  }

  add(now: number, subject: string, error: unknown): void {
    this.#count += 1
    if (this.#loggedAt !== undefined && now - this.#loggedAt < LOG_EVERY_MS) return
    this.#events.messageIgnored(subject, ServeError.from(error).message, this.#count)
    this.#loggedAt = now
    this.#count = 0
  }
}
