import { createServer, type Server } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { Clock, Logger, LogSettings } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { Http2Bounds } from '@tutti/http'
import { inferenceServices } from '@tutti/protocol'
import {
  type AccessLog,
  ClientRequests,
  ControlCalls,
  type ControlGuard,
  drainWithin,
  keepSecure,
  type ListenerBounds,
  listenOn,
  type RunningServer,
  readSecureOptions,
  type SecureOptions,
  type ServerIdentity,
  type TlsFiles,
} from '@tutti/serving'
import type { TraceSettings } from '@tutti/telemetry'
import type { TensorMemory } from '@tutti/tensor'
import { GrpcLog } from './call/log-events.ts'
import { watchReads } from './call/read-watch.ts'
import { watchWrites } from './call/write-watch.ts'
import { CONNECTION_LIFE, type ConnectionLife } from './connections/connection-life.ts'
import { Connections } from './connections/connections.ts'
import { MAX_HEADER_BYTES } from './connections/grpc-caller.ts'
import { ServerCalls, type ServerCallsOptions } from './connections/server-calls.ts'
import { type CompressionLevel, compressAnswers } from './methods/compressed-answers.ts'
import { HealthWatches } from './methods/health-watch.ts'
import { serveInfer } from './methods/infer-call.ts'
import { InferStreamCall } from './methods/infer-stream.ts'
import { type Handler, type Method, type MethodRecord, toMethods } from './methods/method.ts'
import { healthMethods, modelMethods, serverMethods } from './methods/model-methods.ts'
import { reflectionMethods } from './methods/reflection.ts'
import { regionMethods } from './methods/region-methods.ts'
import { repositoryMethods } from './methods/repository-methods.ts'
import { settingsMethods } from './methods/settings-methods.ts'

const MEBIBYTE = 1024 * 1024

/** Bounds of the gRPC server, in the unit of the name. */
export interface GrpcServerBounds
  extends ListenerBounds,
    ConnectionLife,
    Pick<ServerCallsOptions, 'maxMessageBytes'> {
  /** Bytes of the HTTP/2 flow-control window of each stream and of each connection. */
  readonly windowBytes: number
  /** Most open calls of one connection; its client waits with further ones. */
  readonly maxConcurrentStreamsPerConnection: number
  /** Time that a client has to take its answer, or the next response of a stream, before the call is cut off. */
  readonly writeTimeoutMs: number
  /** Time without a byte of a request that the client owes; the call ends after it. */
  readonly readTimeoutMs: number
  /** Time that a client has for one whole request before the call ends. */
  readonly requestTimeoutMs: number
}

export const GRPC_SERVER_DEFAULTS: GrpcServerBounds = {
  ...CONNECTION_LIFE,
  maxMessageBytes: 256 * MEBIBYTE,
  windowBytes: MEBIBYTE,
  maxConnections: 1024,
  maxConnectionsPerAddress: 0,
  maxConcurrentStreamsPerConnection: 1024,
  writeTimeoutMs: 300_000,
  readTimeoutMs: 30_000,
  requestTimeoutMs: 300_000,
}

export interface GrpcServerOptions
  extends Partial<GrpcServerBounds>,
    Omit<ServerCallsOptions, 'log' | 'methods' | 'maxMessageBytes' | 'requests'> {
  /** Counter of clients' requests; absent: they are not counted. */
  readonly requests?: ClientRequests | undefined
  /** An IP address or name to listen on. */
  readonly address: string
  /** 0 for any free port. */
  readonly port: number
  /** Absent: HTTP/2 without TLS. */
  readonly tls?: TlsFiles | undefined
  /** The settings of the log that clients may read and change; none if absent. */
  readonly logSettings?: LogSettings | undefined
  /** The settings of the traces in files that clients may read and change; not offered if absent. */
  readonly traceSettings?: TraceSettings | undefined
  readonly identity: ServerIdentity
  /** Memory of large tensors of requests; ordinary memory if absent. */
  readonly memory?: TensorMemory | undefined
  /** Compression of inference answers; none if absent. */
  readonly compressionLevel?: CompressionLevel
  /** True to offer `Watch` of the health service; absent: false. */
  readonly hasHealthWatch?: boolean
  /** True to offer reflection, which tells clients the services and their messages; absent: false. */
  readonly hasReflection?: boolean
  /** Check of who may load and unload models; absent: everybody may. */
  readonly guardControl?: ControlGuard | undefined
  /** Log of who changes the server; absent: none. */
  readonly accessLog?: AccessLog | undefined
  readonly clock: Clock
  readonly log: Logger
  /** Methods in place of those of the v2 protocol, for tests. */
  readonly methods?: readonly Method[]
}

/**
 * Finds the bounds on what a connection may cost. Streams may be opened and given up: deadlines that run out together reset all
 * streams at once, and calls that follow at once may be refused. Connections from outside are those of a proxy: if one client
 * could end them, it would end the calls of the others.
 */
function toHttp2Bounds(o: GrpcServerBounds & Pick<GrpcServerOptions, 'select'>): Http2Bounds {
  const streams = Math.max(LEAST_RESETS, o.maxConcurrentStreamsPerConnection)
  const clients = o.select === undefined ? 1 : 10
  return {
    windowBytes: o.windowBytes,
    maxConcurrentStreams: o.maxConcurrentStreamsPerConnection,
    maxHeaderListBytes: MAX_HEADER_BYTES,
    resetBurst: 4 * clients * streams,
    resetsPerSecond: clients * streams,
  }
}

/** Each second, on a connection of few streams. One reset costs about 10 us. */
const LEAST_RESETS = 1024

/**
 * Starts the gRPC server: the v2 service and the health service over one backend.
 *
 * @throws ServeError SETTING_INVALID for an address that cannot be listened on, FLAG_INVALID for files of TLS that do not fit.
 */
export async function startGrpcServer(options: GrpcServerOptions): Promise<RunningServer> {
  const o = { ...GRPC_SERVER_DEFAULTS, ...options }
  const log = new GrpcLog(o.log)
  const requests = o.requests ?? new ClientRequests({ protocol: 'grpc', clock: o.clock })
  const calls = new ServerCalls({ ...o, requests, methods: o.methods ?? servedMethods(o), log })
  const secure = readSecureOptions(o.tls, o.clock)
  const server = createSocketServer(secure)
  const connections = new Connections(server, { ...o, calls, log, http2: toHttp2Bounds(o) })
  const onError = (error: Error): void => log.listenerFailed(error)
  const port = await listenOn(server, { address: o.address, port: o.port, onError })
  log.listening(o.address, port)
  const { clock } = o
  const endTls = keepSecure(server, { ...o, secure })
  const endWriteWatch = watchWrites({ clock, timeoutMs: o.writeTimeoutMs, calls, log })
  const times = { silenceMs: o.readTimeoutMs, requestMs: o.requestTimeoutMs }
  const endReadWatch = watchReads({ clock, ...times, calls })
  const stopAccepting = (): Promise<unknown> => {
    calls.stop()
    const stopped = connections.stopAccepting()
    endTls()
    return stopped
  }
  return {
    port,
    stopAccepting: () => void stopAccepting(),
    drain: ({ timeoutMs }) =>
      drainWithin(timeoutMs, toInFlight(calls, stopAccepting(), log), clock),
    close: async () => {
      const closed = connections.close()
      endTls()
      await closed
      endWriteWatch()
      endReadWatch()
    },
  }
}

function createSocketServer(secure: SecureOptions | undefined): Server {
  if (secure === undefined) return createServer({ noDelay: true })
  return createTlsServer({ ...secure.options, noDelay: true, ALPNProtocols: ['h2'] })
}

/** @param stopped - resolves when no more calls can come. */
function toInFlight(calls: ServerCalls, stopped: Promise<unknown>, log: GrpcLog) {
  return {
    whenIdle: async (callback: () => void) => {
      await stopped
      calls.whenIdle(callback)
    },
    failAll: () => {
      const left = [...calls]
      log.drainTimedOut(left.length)
      const text = 'Server is stopping, the request was not answered in time'
      for (const call of left) call.fail(new ServeError('SERVER_STOPPING', text))
    },
  }
}

function servedMethods(o: GrpcServerOptions): readonly Method[] {
  const { inference, health } = inferenceServices()
  const control = new ControlCalls(o)
  const watches = o.hasHealthWatch === true ? new HealthWatches(o.clock) : undefined
  return [
    ...toMethods(inference, {
      ...inferMethods(o),
      ...serverMethods(o.identity),
      ...modelMethods(),
      ...repositoryMethods(control),
      ...settingsMethods({ control, ...o }),
      ...regionMethods(control),
    }),
    ...toMethods(health, healthMethods(watches)),
    ...(o.hasReflection === true ? reflectionMethods() : []),
  ]
}

function inferMethods(o: GrpcServerOptions): Readonly<Record<string, MethodRecord>> {
  const infer = (serve: Handler): MethodRecord => ({
    group: 'inference',
    admission: 'request',
    memory: o.memory,
    serve: compressAnswers(serve, o.compressionLevel ?? 'none'),
  })
  return {
    ModelInfer: infer(serveInfer),
    ModelStreamInfer: infer((call) => new InferStreamCall({ call, clock: o.clock }).start()),
  }
}
