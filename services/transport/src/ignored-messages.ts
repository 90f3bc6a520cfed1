import { ServeError } from '@tutti/errors'
import type { TransportEvents } from './log-events.ts'

/** Bytes that came, and the subject on which; `bytes` belong to the receiver. */
export interface CameBytes {
  readonly subject: string
  readonly bytes: Uint8Array
}

/** Time in which one line reports all ignored messages: a hostile member must not fill the log. */
const LOG_EVERY_MS = 10_000

/** Counts messages that cannot be read, damaged or foreign, and logs the count at intervals. */
export class IgnoredMessages {
  readonly #events: TransportEvents
  #count = 0
  #loggedAt: number | undefined

  constructor(events: TransportEvents) {
    this.#events = events
  }

  /** Decodes a message. @returns undefined, and counts it, if it cannot be read. */
  decode<T>(
    now: number,
    { subject, bytes }: CameBytes,
    decode: (bytes: Uint8Array) => T,
  ): T | undefined {
    try {
      return decode(bytes)
    } catch (error) {
      this.add(now, subject, error)
      return undefined
    }
  }

  add(now: number, subject: string, error: unknown): void {
    this.#count += 1
    if (this.#loggedAt !== undefined && now - this.#loggedAt < LOG_EVERY_MS) return
    this.#events.messageIgnored(subject, ServeError.from(error).message, this.#count)
    this.#loggedAt = now
    this.#count = 0
  }
}
