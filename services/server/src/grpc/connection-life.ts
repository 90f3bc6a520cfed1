import { constants, type ServerHttp2Session } from 'node:http2'
import type { Clock } from '@tutti/chassis'

/** When the server pings a connection, and when it ends one. */
export interface ConnectionLife {
  /** Each connection is pinged at this interval. */
  readonly keepaliveMs: number
  /** How long a client may take to answer a ping; not longer than the time from one to the next. */
  readonly keepaliveTimeoutMs: number
  readonly isPingedWithoutCalls: boolean
  /** A client's pings that follow faster, while it has no open call, are strikes. */
  readonly minPingIntervalMs: number
  /** More strikes end the connection; 0 is no limit. A call sets their count back. */
  readonly maxPingStrikes: number
  /** A client is told to connect again after this time, give or take a tenth; 0 is no limit. */
  readonly maxAgeMs: number
  /** Calls that are open then are cut off after this time; 0 is no limit. */
  readonly maxAgeGraceMs: number
}

/** Those of gRPC but for pings: a client that is gone is to be noticed, and one that pings often does no harm. */
export const CONNECTION_LIFE: ConnectionLife = {
  keepaliveMs: 60_000,
  keepaliveTimeoutMs: 20_000,
  isPingedWithoutCalls: true,
  minPingIntervalMs: 300_000,
  maxPingStrikes: 0,
  maxAgeMs: 0,
  maxAgeGraceMs: 0,
}

/** A connection, as far as its life is concerned. */
export interface LivingConnection {
  readonly session: ServerHttp2Session
  readonly clock: Clock
  readonly hasCalls: () => boolean
  /** Lets it end with its calls, and tells its client to begin no more of them. */
  readonly stop: () => void
}

/** Makes a connection live as the options say. */
export function liveBy(o: ConnectionLife, connection: LivingConnection): void {
  keepAlive(o, connection)
  if (o.maxPingStrikes > 0) limitPings(o, connection)
  if (o.maxAgeMs > 0) limitAge(o, connection)
}

/**
 * Pings a client again and again, and drops the connection if it does not answer. Node's own timeout of a session would spare
 * busy ones the ping, but is set back several times for each call.
 */
function keepAlive(o: ConnectionLife, { session, hasCalls }: LivingConnection): void {
  const { keepaliveMs, keepaliveTimeoutMs } = o
  let drop: NodeJS.Timeout | undefined
  const ping = (): void => {
    if (session.destroyed || !(o.isPingedWithoutCalls || hasCalls())) return
    drop = setTimeout(() => session.destroy(), Math.min(keepaliveMs, keepaliveTimeoutMs)).unref()
    session.ping(() => clearTimeout(drop))
  }
  const timer = setInterval(ping, keepaliveMs).unref()
  session.once('close', () => {
    clearInterval(timer)
    clearTimeout(drop)
  })
}

/** Ends a connection whose client pings too often, with what gRPC clients know as the reason. */
function limitPings(o: ConnectionLife, { session, clock, hasCalls }: LivingConnection): void {
  let last = Number.NEGATIVE_INFINITY
  let strikes = 0
  session.on('stream', () => {
    strikes = 0
  })
  session.on('ping', () => {
    const now = clock.now()
    if (now - last < o.minPingIntervalMs && !hasCalls()) strikes += 1
    last = now
    if (strikes <= o.maxPingStrikes || session.closed) return
    session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM, 0, Buffer.from('too_many_pings'))
    session.close()
  })
}

/** What a timer can wait at most: it ends at once if it is to wait longer. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** Not all at once: clients that came together after a start do not come together again. */
function limitAge(o: ConnectionLife, { session, stop }: LivingConnection): void {
  const ageMs = Math.min(o.maxAgeMs * (0.9 + Math.random() / 5), LONGEST_TIMER_MS)
  let cut: NodeJS.Timeout | undefined
  const age = setTimeout(() => {
    stop()
    if (o.maxAgeGraceMs > 0) cut = setTimeout(() => session.destroy(), o.maxAgeGraceMs).unref()
  }, ageMs).unref()
  session.once('close', () => {
    clearTimeout(age)
    clearTimeout(cut)
  })
}
