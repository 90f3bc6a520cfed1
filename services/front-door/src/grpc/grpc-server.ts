import { isIPv6 } from 'node:net'
import {
  type ChannelOptions,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
} from '@grpc/grpc-js'
import type { Clock, Logger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { encodeInferResponse, inferenceServices } from '@tutti/protocol'
import type { Admission } from '../admission.ts'
import type { Gate, InferenceBackend } from '../inference-backend.ts'
import type { ServerIdentity } from '../server-identity.ts'
import { absentHandlers } from './absent-handlers.ts'
import { Connections } from './connections.ts'
import { DirectInfer } from './direct-infer.ts'
import {
  http2ServersOf,
  interceptStreams,
  setInitialWindow,
  setResetLimit,
} from './grpc-internals.ts'
import { healthHandlers } from './health-handlers.ts'
import { inferOnce } from './infer-call.ts'
import { InferStreamCall } from './infer-stream.ts'
import { LiveCalls } from './live-calls.ts'
import { GrpcLog } from './log-events.ts'
import { modelHandlers, serverHandlers } from './model-handlers.ts'
import { repositoryHandlers } from './repository-handlers.ts'
import { type HandlerContext, unary } from './unary-handler.ts'

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
  /** A connection without any sign of life is asked for one after this time, and dropped if none comes. */
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

export interface GrpcServerOptions extends Partial<GrpcServerBounds> {
  readonly backend: InferenceBackend
  /** Absent: every call reaches `backend`. */
  readonly gate?: Gate
  /** An IP address or name to listen on. */
  readonly address: string
  /** 0 for any free port. */
  readonly port: number
  readonly admission: Admission
  readonly clock: Clock
  readonly log: Logger
  readonly identity: ServerIdentity
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

function toServerOptions(bounds: GrpcServerBounds): ChannelOptions {
  return {
    'grpc.max_receive_message_length': bounds.maxMessageBytes,
    'grpc.max_send_message_length': MAX_MESSAGE_BYTES,
    'grpc.max_concurrent_streams': bounds.maxConcurrentStreamsPerConnection,
    'grpc.keepalive_time_ms': bounds.keepaliveMs,
    // Its bookkeeping costs a tenth of a small call, and nothing here reads it.
    'grpc.enable_channelz': 0,
  }
}

function addServices(
  server: Server,
  context: HandlerContext,
  o: GrpcServerOptions,
  maxBytes: number,
): void {
  const { clock } = o
  const { inference, health } = inferenceServices()
  server.addService(inference, {
    ...serverHandlers(context, o.identity),
    ...modelHandlers(context),
    ...repositoryHandlers(context),
    ...absentHandlers(context),
    // Only what `DirectInfer` leaves.
    ModelInfer: unary<Buffer, Buffer>(context, async (bytes, live) => {
      const answer = encodeInferResponse(await inferOnce(bytes, live, maxBytes))
      live.holdAnswer(answer.byteLength)
      return answer
    }),
    ModelStreamInfer: (call: ServerDuplexStream<Buffer, Buffer>) => {
      const live = context.calls.of(call)
      const isGrpcError = call.metadata.get('triton_grpc_error')[0] === 'true'
      const onError = (error: ServeError) => context.log.callFailed(call.getPath(), error)
      new InferStreamCall({ call, live, maxBytes, clock, isGrpcError, onError }).start()
    },
  })
  server.addService(health, healthHandlers(context))
}

/*
 * Node allows 1000 resets and 33 more each second, and ends the connection of who needs more: a client whose deadlines run
 * out under load would lose the calls that are well. What a reset costs us is bounded by the streams and the admission.
 */
const RESET_BURST = 100_000
const RESETS_PER_SECOND = 10_000

function listen(server: Server, address: string, port: number): Promise<number> {
  const host = isIPv6(address) ? `[${address}]` : address
  return new Promise((resolve, reject) => {
    server.bindAsync(`${host}:${port}`, ServerCredentials.createInsecure(), (error, bound) => {
      if (error === null) resolve(bound)
      else {
        reject(
          new ServeError('SETTING_INVALID', `cannot listen on ${host}:${port}: ${error.message}`, {
            cause: error,
          }),
        )
      }
    })
  })
}

/**
 * Starts the gRPC door: the v2 service and the health service over one backend.
 *
 * @throws ServeError SETTING_INVALID for bounds out of range or an address that cannot be listened on.
 */
export async function startGrpcServer(o: GrpcServerOptions): Promise<GrpcServer> {
  const bounds = { ...GRPC_SERVER_DEFAULTS, ...o }
  checkBounds(bounds)
  const log = new GrpcLog(o.log)
  const { ModelInfer, ModelStreamInfer, RepositoryModelLoad } = inferenceServices().inference
  const calls = new LiveCalls({
    clock: o.clock,
    admission: o.admission,
    gate: o.gate ?? (() => o.backend),
    admittedPaths: new Set([ModelInfer.path, ModelStreamInfer.path, RepositoryModelLoad.path]),
    maxMessageBytes: bounds.maxMessageBytes,
    writeTimeoutMs: bounds.writeTimeoutMs,
    log,
    direct: new DirectInfer({
      path: ModelInfer.path,
      answer: (message, live) => inferOnce(message, live, bounds.maxMessageBytes),
      log,
    }),
  })
  const server = new Server(toServerOptions(bounds))
  setInitialWindow(server, bounds.windowBytes)
  setResetLimit(server, RESET_BURST, RESETS_PER_SECOND)
  addServices(server, { calls, log }, o, bounds.maxMessageBytes)
  const port = await listen(server, o.address, o.port)
  const http2Servers = http2ServersOf(server)
  const { maxConnections, windowBytes } = bounds
  const connections = new Connections(http2Servers, { maxConnections, windowBytes, log })
  for (const http2Server of http2Servers) interceptStreams(http2Server, calls.accept)
  log.listening(o.address, port)
  return new RunningGrpcServer({ port, calls, connections, clock: o.clock, log, server })
}

interface Running {
  readonly port: number
  readonly calls: LiveCalls
  readonly connections: Connections
  readonly clock: Clock
  readonly log: GrpcLog
  readonly server: Server
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
    this.#o.server.forceShutdown()
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
