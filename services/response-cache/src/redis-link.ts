import { type Clock, errorText } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { RedisCacheEvents } from './log-events.ts'
import { connectRedis, type RedisConnection, redisReply } from './redis-connection.ts'
import type { RedisSettings } from './redis-settings.ts'

const RETRY_MS = 1000
/** Errors that no later attempt would make better: who we are, and which database we want. */
const REFUSALS = /^(WRONGPASS|NOAUTH|NOPERM|ERR .*(AUTH|password|DB index))/

/** Keeps one connection to Redis. It closes a connection that is lost or does not answer, and tries a new one every second. */
export class RedisLink {
  readonly #settings: RedisSettings
  readonly #clock: Clock
  readonly #events: RedisCacheEvents
  #connection: RedisConnection | undefined
  #isClosed = false
  /** The refusal of the last attempt, where it was not the first. */
  #refusal: string | undefined
  #stopTimer = (): void => {}

  constructor(
    settings: RedisSettings,
    o: { readonly clock: Clock; readonly events: RedisCacheEvents },
  ) {
    this.#settings = settings
    this.#clock = o.clock
    this.#events = o.events
  }

  /** The open connection; undefined while Redis is away. */
  get connection(): RedisConnection | undefined {
    return this.#connection
  }

  /**
   * Tries once to connect. If Redis is away, it resolves and tries again later.
   *
   * @throws ServeError FLAG_INVALID for files that cannot be read; Redis' own error if it refuses user, password or database.
   */
  async open(): Promise<void> {
    try {
      await this.#connect()
    } catch (error) {
      if (error instanceof ServeError || REFUSALS.test(redisReply(error) ?? '')) throw error
      this.#events.away(errorText(error))
      this.#retryLater()
    }
  }

  /** Closes a connection that failed, and connects anew later. A second call for the same connection does nothing. */
  lost(connection: RedisConnection, error: unknown): void {
    if (connection !== this.#connection) return
    this.#connection = undefined
    connection.close()
    if (this.#isClosed) return
    this.#events.away(errorText(error))
    this.#retryLater()
  }

  close(): void {
    this.#isClosed = true
    this.#stopTimer()
    this.#connection?.close()
    this.#connection = undefined
  }

  async #connect(): Promise<void> {
    const lost = (error: Error): void => {
      if (made !== undefined) this.lost(made, error)
    }
    let made: RedisConnection | undefined
    made = await connectRedis(this.#settings, { clock: this.#clock, lost })
    if (this.#isClosed) return made.close()
    this.#connection = made
    this.#events.connected()
  }

  #retryLater(): void {
    this.#stopTimer = this.#clock.setTimer(RETRY_MS, () => {
      this.#connect().catch((error: unknown) => {
        if (this.#isClosed) return
        this.#tellRefusal(error)
        this.#retryLater()
      })
    })
  }

  /** Logs why Redis refuses this process, or that a file cannot be read. Only that Redis is away was logged before. */
  #tellRefusal(error: unknown): void {
    const refusal = error instanceof ServeError ? error.message : redisReply(error)
    if (refusal !== undefined && refusal !== this.#refusal) this.#events.away(refusal)
    this.#refusal = refusal
  }
}
