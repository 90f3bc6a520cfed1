import { type Clock, errorText, type Logger, limitLog } from '@tutti/chassis'
import { outputBytes } from '@tutti/tensor'
import manifest from '../package.json' with { type: 'json' }
import { RedisCacheEvents } from './log-events.ts'
import { type RedisConnection, redisReply, within } from './redis-connection.ts'
import { decodeEntry, encodeEntry } from './redis-entry.ts'
import { RedisLink } from './redis-link.ts'
import type { RedisSettings } from './redis-settings.ts'
import type { CacheCounts, CachedResponse, ResponseCache } from './response-cache.ts'

/** Another version may answer in another way, and so reads no entries of this one. */
const PREFIX = `tutti:${manifest.version}:`
/** On their way at once; what comes beyond is a miss. */
const MAX_LOOKUPS = 1024
/** Most bytes of a kept response: lookups behind a larger one on the connection would wait too long. */
const MAX_ENTRY_BYTES = 16 * 1024 * 1024
/** Bytes of responses on their way to Redis; what comes beyond is not kept. */
const MAX_PENDING_BYTES = 64 * 1024 * 1024
/** Time for which no response is sent after Redis has refused one. */
const REFUSED_MS = 1000

/**
 * Opens the cache in Redis. If Redis is away, the cache opens all the same: each lookup is a miss until Redis is there.
 *
 * @throws ServeError FLAG_INVALID for files that cannot be read; Redis' own error if it refuses user, password or database.
 */
export async function openRedisCache(
  settings: RedisSettings,
  o: { readonly clock: Clock; readonly log: Logger },
): Promise<RedisCache> {
  const { clock } = o
  const { host, port } = settings
  const events = new RedisCacheEvents(limitLog(o.log.child({ host, port }), { clock }))
  if (settings.hasPoolSize) events.poolSizeUnused()
  const link = new RedisLink(settings, { clock, events })
  await link.open()
  return new RedisCache(link, { clock, events, lookupMs: settings.lookupMs })
}

/** A response cache in Redis, which processes share. Keys in it must name models by their contents, not by their load. */
export class RedisCache implements ResponseCache {
  readonly isShared = true
  readonly #link: RedisLink
  readonly #clock: Clock
  readonly #events: RedisCacheEvents
  readonly #lookupMs: number
  readonly #counted = { hits: 0, misses: 0, lookupNs: 0, insertionNs: 0 }
  #lookups = 0
  #pendingBytes = 0
  #isFull = false
  #insertsAt = Number.NEGATIVE_INFINITY
  #isForeignKnown = false

  constructor(
    link: RedisLink,
    o: { readonly clock: Clock; readonly events: RedisCacheEvents; readonly lookupMs: number },
  ) {
    this.#link = link
    this.#clock = o.clock
    this.#events = o.events
    this.#lookupMs = o.lookupMs
  }

  get counts(): CacheCounts {
    return { ...this.#counted }
  }

  lookup(key: string): Promise<CachedResponse | undefined> | undefined {
    const { connection } = this.#link
    if (connection !== undefined && this.#lookups < MAX_LOOKUPS) return this.#find(connection, key)
    this.#counted.misses += 1
    return undefined
  }

  insert(key: string, response: CachedResponse): void {
    const { connection } = this.#link
    const bytes = outputBytes(response)
    const isPossible = connection !== undefined && this.#clock.now() >= this.#insertsAt
    if (!isPossible || bytes > MAX_ENTRY_BYTES) return
    if (this.#pendingBytes + bytes > MAX_PENDING_BYTES) return
    void this.#keep(connection, key, encodeEntry(key, response))
  }

  close(): Promise<void> {
    this.#link.close()
    return Promise.resolve()
  }

  async #find(connection: RedisConnection, key: string): Promise<CachedResponse | undefined> {
    const startedAt = this.#clock.now()
    this.#lookups += 1
    const entry = await this.#get(connection, `${PREFIX}${key}`)
    this.#lookups -= 1
    const response = entry && decodeEntry(key, entry)
    if (entry !== undefined && response === undefined) this.#foundForeign(key)
    this.#counted[response === undefined ? 'misses' : 'hits'] += 1
    this.#counted.lookupNs += this.#sinceNs(startedAt)
    return response
  }

  async #get(connection: RedisConnection, key: string): Promise<Buffer | undefined> {
    try {
      return (await within(this.#lookupMs, this.#clock, connection.get(key))) ?? undefined
    } catch (error) {
      if (redisReply(error)?.startsWith('WRONGTYPE')) this.#foundForeign(key)
      else this.#link.lost(connection, error)
      return undefined
    }
  }

  /** Notes an entry that is not ours. The next insertion replaces it. */
  #foundForeign(key: string): void {
    if (!this.#isForeignKnown) this.#events.foreignEntry(key)
    this.#isForeignKnown = true
  }

  async #keep(connection: RedisConnection, key: string, entry: Buffer): Promise<void> {
    const startedAt = this.#clock.now()
    this.#pendingBytes += entry.byteLength
    try {
      await connection.set(`${PREFIX}${key}`, entry)
      if (this.#isFull) this.#events.notFull()
      this.#isFull = false
    } catch (error) {
      if (redisReply(error) === undefined) this.#link.lost(connection, error)
      else this.#refused(errorText(error))
    }
    this.#pendingBytes -= entry.byteLength
    this.#counted.insertionNs += this.#sinceNs(startedAt)
  }

  #refused(problem: string): void {
    if (!this.#isFull) this.#events.full(problem)
    this.#isFull = true
    this.#insertsAt = this.#clock.now() + REFUSED_MS
  }

  #sinceNs(startedAt: number): number {
    return (this.#clock.now() - startedAt) * 1e6
  }
}
