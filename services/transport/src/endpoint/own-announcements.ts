import type { ServeError } from '@tutti/errors'
import type { TransportEvents } from '../log-events.ts'

/** Heartbeats are tried four times a second; one line in that time says that none fits. */
const LOG_EVERY_MS = 30_000

/** Whether this member can say of itself what it has to say, which others know it by; when it cannot, it says so here. */
export class OwnAnnouncements {
  readonly #events: TransportEvents
  #failure: ServeError | undefined
  #loggedAt = 0

  constructor(events: TransportEvents) {
    this.#events = events
  }

  /** Why the last one could not be sent; undefined if it could. */
  get failure(): ServeError | undefined {
    return this.#failure
  }

  failed(now: number, error: ServeError): void {
    const isNew = this.#failure === undefined
    this.#failure = error
    if (!isNew && now - this.#loggedAt < LOG_EVERY_MS) return
    this.#loggedAt = now
    this.#events.announceFailed(error)
  }

  succeeded(): void {
    if (this.#failure === undefined) return
    this.#failure = undefined
    this.#events.announcedAgain()
  }
}
