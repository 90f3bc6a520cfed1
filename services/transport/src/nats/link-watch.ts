import type { BrokerConnection } from './nats-connection.ts'

/** Times in milliseconds after which a connection's broker counts as silent. */
export interface LinkWatchSettings {
  readonly askEveryMs: number
  readonly deadMs: number
}

/** The part of a connection that the watch uses. */
export type WatchedConnection = Pick<BrokerConnection, 'isConnected' | 'flush' | 'abandon'>

/**
 * Asks the broker over a connection whether it is there, and gives the connection up when no answer comes: a broker or a
 * network that stalls leaves the connection open.
 */
export class LinkWatch {
  readonly #connection: WatchedConnection
  readonly #settings: LinkWatchSettings
  readonly #onSilent: (silentMs: number) => void
  #askedAt: number | undefined
  #answeredAt = 0
  /** Time of the last tick. */
  #now = 0
  /** The answer was due at the last tick. */
  #isOverdue = false
  /** Counts questions, so that an answer to one on a connection that is gone is not taken for the newest. */
  #question = 0

  constructor(
    connection: WatchedConnection,
    settings: LinkWatchSettings,
    onSilent: (silentMs: number) => void,
  ) {
    this.#connection = connection
    this.#settings = settings
    this.#onSilent = onSilent
  }

  /** Milliseconds for which the broker has owed an answer. */
  get silentMs(): number {
    return this.#askedAt === undefined ? 0 : this.#now - this.#askedAt
  }

  /** Forgets a question that waits for its answer: the connection is new or gone. */
  reset(): void {
    this.#askedAt = undefined
    this.#isOverdue = false
    this.#question += 1
  }

  /** Asks when it is time, and gives the connection up when no answer has come. @param now - ListenedTime's, in milliseconds. */
  tick(now: number): void {
    const { askEveryMs, deadMs } = this.#settings
    this.#now = now
    if (!this.#connection.isConnected) return
    if (this.#askedAt === undefined) {
      if (now - this.#answeredAt >= askEveryMs) this.#ask(now)
      return
    }
    const { silentMs } = this
    const wasOverdue = this.#isOverdue
    this.#isOverdue = silentMs >= deadMs
    // Timers fire before sockets are read: on a busy machine the answer may lie unread, but not until the next tick.
    if (!wasOverdue || !this.#isOverdue) return
    this.#onSilent(silentMs)
    this.#connection.abandon(`the broker was silent for ${Math.round(silentMs)} ms`)
  }

  #ask(now: number): void {
    this.#question += 1
    this.#isOverdue = false
    const question = this.#question
    this.#askedAt = now
    const answered = (): void => {
      if (question !== this.#question) return
      this.#askedAt = undefined
      this.#answeredAt = this.#now
    }
    // A rejection says that the connection is gone, which its listener hears by itself.
    this.#connection.flush().then(answered, answered)
  }
}
