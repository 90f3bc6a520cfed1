import { createServer } from 'node:http2'
import type { Clock, Logger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { Admission } from '../admission.ts'
import type { Gate } from '../inference-backend.ts'
import { listenOn } from '../listen.ts'
import { Connections } from './connections.ts'
import { GrpcLog } from './log-events.ts'
import type { Method } from './method.ts'
import { ServerCalls } from './server-calls.ts'

const MEBIBYTE = 1024 * 1024
const MAX_MESSAGE_BYTES = 2 ** 31 - 1
/** HTTP/2 windows are at least its default and at most 2^31 - 1 bytes. */
const WINDOW_BYTES = { least: 65_535, most: 2 ** 31 - 1 }

/** Bounds of the gRPC door; each is a number of what its name says. */
export interface GrpcServerBounds {
  /** Bytes of one message, compressed or not; at most 2^31 - 1. */
  readonly maxMessageBytes: number
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
  /** A call whose client has not taken the answer, or the next response of a stream, within this time is cut off. */
  readonly writeTimeoutMs: number
}

export const GRPC_SERVER_DEFAULTS: GrpcServerBounds = {
  maxMessageBytes: 256 * MEBIBYTE,
  windowBytes: MEBIBYTE,
  maxConnections: 1024,
  maxConcurrentStreamsPerConnection: 1024,
  keepaliveMs: 60_000,
  writeTimeoutMs: 300_000,
}

export interface RpcServerOptions extends GrpcServerBounds {
  readonly methods: readonly Method[]
  readonly gate: Gate
  /** An IP address or name to listen on. */
  readonly address: string
  /** 0 for any free port. */
  readonly port: number
  readonly admission: Admission
  readonly clock: Clock
  readonly log: Logger
}

export interface GrpcServer {
  readonly port: number
  /** Takes no more connections and no more calls; what was accepted goes on. */
  stopAccepting(): void
  /**
   * Stops accepting and waits for the calls that there are. What is not answered in time is answered SERVER_STOPPING, and the
   * result is false.
   * @param o.timeoutMs - how long calls may take.
   */
  drain(o: { readonly timeoutMs: number }): Promise<boolean>
  /** Ends everything at once; after `drain` nothing is left to end. */
  close(): Promise<void>
}

function checkBounds(bounds: GrpcServerBounds): void {
  const { maxMessageBytes, windowBytes } = bounds
  if (!(maxMessageBytes >= 1 && maxMessageBytes <= MAX_MESSAGE_BYTES)) {
    throw new ServeError(
      'SETTING_INVALID',
      `maxMessageBytes is ${maxMessageBytes}, want 1 to ${MAX_MESSAGE_BYTES}`,
      { details: { field: 'maxMessageBytes' } },
    )
  }
  if (!(windowBytes >= WINDOW_BYTES.least && windowBytes <= WINDOW_BYTES.most)) {
    throw new ServeError(
      'SETTING_INVALID',
      `windowBytes is ${windowBytes}, want ${WINDOW_BYTES.least} to ${WINDOW_BYTES.most}`,
      { details: { field: 'windowBytes' } },
    )
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
export async function startRpcServer(o: RpcServerOptions): Promise<GrpcServer> {
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
  return new RunningGrpcServer({ port, calls, connections, clock: o.clock, log })
}

interface Running {
  readonly port: number
  readonly calls: ServerCalls
  readonly connections: Connections
  readonly clock: Clock
  readonly log: GrpcLog
}

/** How long an answer given at the end of a drain may take to reach its client. */
const LAST_ANSWERS_MS = 1000

class RunningGrpcServer implements GrpcServer {
  readonly port: number
  readonly #o: Running

  constructor(o: Running) {
    this.port = o.port
    this.#o = o
  }

  stopAccepting(): void {
    this.#o.connections.stopAccepting()
    this.#o.calls.stop()
  }

  async drain({ timeoutMs }: { readonly timeoutMs: number }): Promise<boolean> {
    this.stopAccepting()
    const { calls, log } = this.#o
    if (await this.#idleWithin(timeoutMs)) return true
    log.drainTimedOut(calls.size)
    calls.failAll(
      new ServeError('SERVER_STOPPING', `Server is stopping, the request was not answered in time`),
    )
    await this.#idleWithin(LAST_ANSWERS_MS)
    return false
  }

  async close(): Promise<void> {
    await this.#o.connections.close()
    this.#o.calls.close()
  }

  #idleWithin(timeoutMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const stopTimer = this.#o.clock.setTimer(timeoutMs, () => resolve(false))
      this.#o.calls.whenIdle(() => {
        stopTimer()
        resolve(true)
      })
    })
  }
}
