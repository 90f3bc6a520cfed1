import { createClient, ErrorReply, RESP_TYPES } from '@redis/client'
import type { Clock } from '@tutti/chassis'
import type { RedisSettings, RedisTls } from './redis-settings.ts'

/** A connection to Redis that has answered once. Whatever goes wrong rejects; nothing is tried again or kept for later. */
export interface RedisConnection {
  get(key: string): Promise<Buffer | null>
  /** The bytes are viewed until it resolves. */
  set(key: string, value: Buffer): Promise<unknown>
  /** Closes the connection. What is on its way rejects. */
  close(): void
}

/** Read at the start of a connection: where that is not allowed, no entry could be read either. */
const PROBE = 'tutti:probe'

/**
 * Connects, logs in and reads once.
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

/** As the promise, but rejects if it takes longer. An answer that came while this process was busy is in time. */
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

/** The error that Redis itself answered with, such as `OOM command not allowed ...`; undefined for any other. */
export function redisReply(error: unknown): string | undefined {
  return error instanceof ErrorReply ? error.message : undefined
}

/** Says what is wrong, in words. Where a name has several addresses the error of all of them has only a code. */
export function problemOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = 'code' in error ? String(error.code) : error.name
  return error.message === '' ? code : error.message
}
