import { createClient, ErrorReply, RESP_TYPES } from '@redis/client'
import type { Clock } from '@tutti/chassis'
import type { RedisSettings, RedisTls } from './redis-settings.ts'

/** A connection to Redis that has answered once. A failed command rejects; it is neither tried again nor queued. */
export interface RedisConnection {
  get(key: string): Promise<Buffer | null>
  /** Writes a value, which is viewed until the promise settles. */
  set(key: string, value: Buffer): Promise<unknown>
  /** Closes the connection. Commands on their way reject. */
  close(): void
}

/** Read at the start of a connection: where that is not allowed, no entry could be read either. */
const PROBE = 'tutti:probe'

/**
 * Connects to Redis, logs in, and reads one key to prove that reads are allowed.
 *
 * @param lost - called when the connection breaks.
 */
export async function connectRedis(
  settings: RedisSettings,
  o: { readonly clock: Clock; readonly lost: (error: Error) => void },
): Promise<RedisConnection> {
  const { host, port, user, password, db, connectMs, readTls } = settings
  const client = createClient({
    // The version that every server speaks that calls itself compatible.
    RESP: 2,
    disableClientInfo: true,
    maintNotifications: 'disabled',
    ...(user !== undefined && { username: user }),
    ...(password !== undefined && { password: password.reveal() }),
    database: db,
    commandOptions: { timeout: 0, typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } },
    socket: {
      host,
      port,
      connectTimeout: connectMs,
      reconnectStrategy: false,
      ...(readTls && secured(readTls())),
    },
  })
  client.on('error', o.lost)
  try {
    const answered = client.connect().then(() => client.get(PROBE))
    await within(connectMs, o.clock, answered)
  } catch (error) {
    client.destroy()
    throw error
  }
  return {
    get: async (key) => {
      const reply: unknown = await client.get(key)
      if (reply === null || Buffer.isBuffer(reply)) return reply
      // Whatever is there, it would answer anything else as wrongly.
      throw new Error('got an answer that is no value: want a Redis')
    },
    set: (key, value) => client.set(key, value),
    close: () => client.destroy(),
  }
}

function secured({ ca, ...files }: RedisTls) {
  return { tls: true as const, ...files, ...(ca && { ca: [...ca] }) }
}

/** Settles as the promise does, but rejects after `ms`. An answer that came while this process was busy counts as in time. */
export async function within<T>(ms: number, clock: Clock, promise: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const give = (): void => late.reject(new Error(`no answer within ${ms} ms`))
  const stop = clock.setTimer(ms, () => void setImmediate(give))
  try {
    return await Promise.race([promise, late.promise])
  } finally {
    stop()
  }
}

/** Reads the text of an error that Redis itself answered, such as `OOM command not allowed ...`; undefined for other errors. */
export function redisReply(error: unknown): string | undefined {
  return error instanceof ErrorReply ? error.message : undefined
}
