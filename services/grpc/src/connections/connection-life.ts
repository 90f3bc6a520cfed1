import type { Socket } from 'node:net'
import type { Clock } from '@tutti/chassis'
import { ErrorCode, type Http2Connection } from '@tutti/http'

/** When the server pings a connection, and when it ends one. */
export interface ConnectionLife {
  /** Each connection is pinged at this interval. */
  readonly keepaliveMs: number
  /** How long a client may take to answer a ping; not longer than the time from one to the next. */
  readonly keepaliveTimeoutMs: number
  readonly isPingedWithoutCalls: boolean
  /** Least time between two pings of a client without an open call; a ping that comes sooner is a strike. */
  readonly minPingIntervalMs: number
  /** Most strikes of a connection: one more ends it. 0 is no limit. A new call sets the count back. */
  readonly maxPingStrikes: number
  /** A client is told to connect again after this time, give or take a tenth; 0 is no limit. */
  readonly maxAgeMs: number
  /** Time that calls open at `maxAgeMs` have before they are cut off; 0 is no limit. */
  readonly maxAgeGraceMs: number
}

/**
 * The defaults, as gRPC has them except for pings: ours find clients that are gone, and clients may ping as often as they like.
 */
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
  readonly connection: Http2Connection
  readonly socket: Socket
  readonly clock: Clock
  /** Function that tells the client to begin no more calls, and lets the connection end with its last call. */
  readonly stop: () => void
}

/** Starts the pings and limits of a connection that the options set. @returns a function to call on each ping of the client. */
export function liveBy(o: ConnectionLife, connection: LivingConnection): () => void {
  keepAlive(o, connection)
  if (o.maxAgeMs > 0) limitAge(o, connection)
  return o.maxPingStrikes > 0 ? limitPings(o, connection) : () => {}
}

/** Pings a client again and again, and drops the connection if it does not answer. */
function keepAlive(o: ConnectionLife, { connection, socket }: LivingConnection): void {
  const { keepaliveMs, keepaliveTimeoutMs } = o
  let drop: NodeJS.Timeout | undefined
  const ping = (): void => {
    const isPinged = o.isPingedWithoutCalls || connection.streamCount > 0
    if (connection.isClosed || !isPinged) return
    drop = setTimeout(() => connection.destroy(), Math.min(keepaliveMs, keepaliveTimeoutMs)).unref()
    connection.ping(() => clearTimeout(drop))
  }
  const timer = setInterval(ping, keepaliveMs).unref()
  socket.once('close', () => {
    clearInterval(timer)
    clearTimeout(drop)
  })
}

/** Ends a connection whose client pings too often, with what gRPC clients know as the reason. */
function limitPings(o: ConnectionLife, { connection, clock }: LivingConnection): () => void {
  let last = Number.NEGATIVE_INFINITY
  let strikes = 0
  let lastStreamId = 0
  return () => {
    const now = clock.now()
    if (connection.lastStreamId > lastStreamId) strikes = 0
    lastStreamId = connection.lastStreamId
    if (now - last < o.minPingIntervalMs && connection.streamCount === 0) strikes += 1
    last = now
    if (strikes > o.maxPingStrikes) connection.stop(ErrorCode.enhanceYourCalm, 'too_many_pings')
  }
}

/** The longest time that a timer can wait: it ends at once if it is to wait longer. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** Not all at once: clients that came together after a start do not come together again. */
function limitAge(o: ConnectionLife, { connection, socket, stop }: LivingConnection): void {
  const ageMs = Math.min(o.maxAgeMs * (0.9 + Math.random() / 5), LONGEST_TIMER_MS)
  let cut: NodeJS.Timeout | undefined
  const age = setTimeout(() => {
    stop()
    if (o.maxAgeGraceMs > 0) cut = setTimeout(() => connection.destroy(), o.maxAgeGraceMs).unref()
  }, ageMs).unref()
  socket.once('close', () => {
    clearTimeout(age)
    clearTimeout(cut)
  })
}
