import { createServer } from 'node:http2'
import type { Clock, Logger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { drainWithin } from '../drain.ts'
import { listenOn, type RunningServer } from '../listen.ts'
import { Connections } from './connections.ts'
import { GrpcLog } from './log-events.ts'
import { ServerCalls, type ServerCallsOptions } from './server-calls.ts'

const MEBIBYTE = 1024 * 1024
const INT32_MAX = 2 ** 31 - 1
/** gRPC's framing here, and what HTTP/2 allows: not less than its default. */
const RANGES = { maxMessageBytes: [1, INT32_MAX], windowBytes: [65_535, INT32_MAX] } as const

/** Bounds of the gRPC server; each is a number of what its name says. */
export interface GrpcServerBounds
  extends Pick<ServerCallsOptions, 'maxMessageBytes' | 'writeTimeoutMs'> {
  /**
   * HTTP/2 flow-control window of each stream and of each connection: what may be under way without a credit. Keep it below
   * what the sockets' buffers hold: Node stops reading a connection while a write to it waits, so that with more than that
   * under way both ways, two Node processes wait for each other for ever.
   */
  readonly windowBytes: number
  /** Further connections are dropped as they come. */
  readonly maxConnections: number
  /** Clients wait with further calls on a connection. */
  readonly maxConcurrentStreamsPerConnection: number
  /** Each connection is pinged at this interval, and dropped if its client does not answer. */
  readonly keepaliveMs: number
}

export const GRPC_SERVER_DEFAULTS: GrpcServerBounds = {
  maxMessageBytes: 256 * MEBIBYTE,
  windowBytes: MEBIBYTE,
  maxConnections: 1024,
  maxConcurrentStreamsPerConnection: 1024,
  keepaliveMs: 60_000,
  writeTimeoutMs: 300_000,
}

export interface RpcServerOptions extends GrpcServerBounds, Omit<ServerCallsOptions, 'log'> {
  /** An IP address or name to listen on. */
  readonly address: string
  /** 0 for any free port. */
  readonly port: number
  readonly log: Logger
}

function checkBounds(bounds: GrpcServerBounds): void {
  for (const field of ['maxMessageBytes', 'windowBytes'] as const) {
    const [least, most] = RANGES[field]
    const value = bounds[field]
    if (value >= least && value <= most) continue
    const message = `${field} is ${value}, want ${least} to ${most}`
    throw new ServeError('SETTING_INVALID', message, { details: { field } })
  }
}

/*
 * Node allows 1000 resets and 33 more each second, and ends the connection of who needs more: a client whose deadlines run
 * out under load would lose the calls that are well. What a reset costs us is bounded by the streams and the admission.
 */
const RESET_BURST = 100_000
const RESETS_PER_SECOND = 10_000

/**
 * Starts a gRPC server on HTTP/2 without TLS, of any methods.
 *
 * @throws ServeError SETTING_INVALID for bounds out of range or an address that cannot be listened on.
 */
export async function startRpcServer(o: RpcServerOptions): Promise<RunningServer> {
  checkBounds(o)
  const { address, windowBytes, maxConnections, keepaliveMs } = o
  const log = new GrpcLog(o.log)
  const calls = new ServerCalls({ ...o, log })
  const server = createServer({
    settings: {
      initialWindowSize: windowBytes,
      maxConcurrentStreams: o.maxConcurrentStreamsPerConnection,
    },
    streamResetBurst: RESET_BURST,
    streamResetRate: RESETS_PER_SECOND,
    // The admission bounds what calls hold. At a bound of Node's own it ends connections.
    maxSessionMemory: Number.MAX_SAFE_INTEGER,
    maxSendHeaderBlockLength: Number.MAX_SAFE_INTEGER,
  })
  server.on('stream', calls.accept)
  const connections = new Connections(server, { maxConnections, windowBytes, keepaliveMs, log })
  const onError = (error: Error): void => log.listenerFailed(error)
  const port = await listenOn(server, { address, port: o.port, onError })
  log.listening(address, port)
  return toServer({ port, calls, connections, clock: o.clock, log })
}

function toServer(o: {
  readonly port: number
  readonly calls: ServerCalls
  readonly connections: Connections
  readonly clock: Clock
  readonly log: GrpcLog
}): RunningServer {
  const { port, calls, connections, clock, log } = o
  const stopAccepting = (): void => {
    connections.stopAccepting()
    calls.stop()
  }
  const failAll = (): void => {
    log.drainTimedOut(calls.size)
    const message = 'Server is stopping, the request was not answered in time'
    calls.failAll(new ServeError('SERVER_STOPPING', message))
  }
  const drain: RunningServer['drain'] = ({ timeoutMs }) => {
    stopAccepting()
    return drainWithin(
      timeoutMs,
      { whenIdle: (callback) => calls.whenIdle(callback), failAll },
      clock,
    )
  }
  const close = async (): Promise<void> => {
    await connections.close()
    calls.close()
  }
  return { port, stopAccepting, drain, close }
}
