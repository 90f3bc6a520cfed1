import type { Clock, FlagValues, Logger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { Admission } from './admission.ts'
import type { DOOR_FLAGS } from './door-flags.ts'
import { createEdgeGate, type EdgeRoute } from './edge/edge-gate.ts'
import { startGrpcServer } from './grpc/grpc-server.ts'
import type { GrpcServer } from './grpc/rpc-server.ts'
import type { Gate, InferenceBackend } from './inference-backend.ts'
import type { ServerMetrics } from './metrics.ts'
import {
  type HealthReading,
  type JsonAnswers,
  type MetricsServer,
  startMetricsServer,
} from './metrics-server.ts'
import { type RestServer, startRestServer } from './rest/rest-server.ts'
import { SERVER_IDENTITY } from './server-identity.ts'

/** Doors for those who come from outside: each reaches what its host and token lead to. */
export interface EdgeDoorsOptions {
  /** See EdgeGateOptions. */
  readonly routes: () => readonly EdgeRoute[]
  readonly address: string
  /** 0 for any free port. */
  readonly grpcPort: number
  readonly httpPort: number
}

export interface DoorsOptions {
  readonly flags: FlagValues<typeof DOOR_FLAGS>
  readonly backend: InferenceBackend
  readonly metrics: ServerMetrics
  /** Absent: nobody comes from outside. */
  readonly edge?: EdgeDoorsOptions | undefined
  /** For `/livez` and `/readyz` on the metrics port. */
  readonly health?: HealthReading
  /** For further paths on the metrics port. */
  readonly answers?: JsonAnswers
  /** The metrics endpoint if it is open already; closed with the doors. */
  readonly metricsServer?: MetricsServer | undefined
  readonly clock: Clock
  readonly log: Logger
}

/** The ports that are listened on; a door that is not allowed has none. */
export interface DoorPorts {
  readonly grpcPort?: number
  readonly httpPort?: number
  readonly metricsPort?: number
  readonly edgeGrpcPort?: number
  readonly edgeHttpPort?: number
}

/** All front doors of one process over one backend and one admission. */
export interface Doors {
  readonly ports: DoorPorts
  /** No new connections and no new requests. The metrics stay until `close`. */
  stopAccepting(): void
  /**
   * Resolves when every accepted request is answered; what is not by `timeoutMs` is answered SERVER_STOPPING, and the result is
   * false.
   */
  drain(o: { readonly timeoutMs: number }): Promise<boolean>
  close(): Promise<void>
}

/** For the end of a drain. @throws ServeError SERVER_STOPPING if the doors had to refuse what they had accepted. */
export function checkAnswered(isAnswered: boolean): void {
  if (!isAnswered) throw new ServeError('SERVER_STOPPING', 'requests were not answered in time')
}

/**
 * Opens only the metrics endpoint, if the flags allow it: for executables that take long to start and must answer probes
 * meanwhile. They open the doors later with `metricsServer`.
 *
 * @throws ServeError SETTING_INVALID if the address is not to be had.
 */
export async function openMetricsDoor(
  o: Pick<DoorsOptions, 'flags' | 'metrics' | 'health' | 'answers' | 'log'>,
): Promise<MetricsServer | undefined> {
  if (!o.flags['allow-metrics']) return undefined
  return await startMetricsServer({
    address: o.flags['metrics-address'],
    port: o.flags['metrics-port'],
    metrics: o.metrics,
    log: o.log.child({ door: 'metrics' }),
    ...(o.health !== undefined && { health: o.health }),
    ...(o.answers !== undefined && { answers: o.answers }),
  })
}

/** Opens the doors that the flags allow. @throws ServeError SETTING_INVALID if an address is not to be had. */
export async function openDoors(o: DoorsOptions): Promise<Doors> {
  const admission = new Admission({
    maxRequests: o.flags['max-inflight-requests'],
    maxBytes: o.flags['max-inflight-bytes'],
  })
  const opened: { close(): Promise<void> }[] = []
  const open = async <T extends { close(): Promise<void> }>(
    isAllowed: boolean,
    start: () => Promise<T>,
  ): Promise<T | undefined> => {
    if (!isAllowed) return undefined
    const door = await start()
    opened.push(door)
    return door
  }
  try {
    const metrics = o.metricsServer ?? (await openMetricsDoor(o))
    if (metrics !== undefined) opened.push(metrics)
    const { flags, edge } = o
    const http = await open(flags['allow-http'], () => openRest(o, admission))
    const grpc = await open(flags['allow-grpc'], () => openGrpc(o, admission))
    const edgeHttp = await open(edge !== undefined, () => openRest(o, admission, edge))
    const edgeGrpc = await open(edge !== undefined, () => openGrpc(o, admission, edge))
    return toDoors({ grpc, http, edgeGrpc, edgeHttp }, metrics)
  } catch (error) {
    await Promise.all(opened.map((door) => door.close()))
    throw error
  }
}

/** Those that are open. */
interface OpenDoors {
  readonly grpc: GrpcServer | undefined
  readonly http: RestServer | undefined
  readonly edgeGrpc: GrpcServer | undefined
  readonly edgeHttp: RestServer | undefined
}

function toDoors(open: OpenDoors, metrics: MetricsServer | undefined): Doors {
  const { grpc, http, edgeGrpc, edgeHttp } = open
  const doors = [grpc, http, edgeGrpc, edgeHttp].filter((door) => door !== undefined)
  return {
    ports: {
      ...(grpc !== undefined && { grpcPort: grpc.port }),
      ...(http !== undefined && { httpPort: http.port }),
      ...(metrics !== undefined && { metricsPort: metrics.port }),
      ...(edgeGrpc !== undefined && { edgeGrpcPort: edgeGrpc.port }),
      ...(edgeHttp !== undefined && { edgeHttpPort: edgeHttp.port }),
    },
    stopAccepting: () => {
      for (const door of doors) door.stopAccepting()
    },
    drain: async (limit) => {
      const drained = await Promise.all(doors.map((door) => door.drain(limit)))
      return drained.every((isAnswered) => isAnswered)
    },
    close: async () => {
      await Promise.all(doors.map((door) => door.close()))
      await metrics?.close()
    },
  }
}

function toGate(backend: InferenceBackend, edge: EdgeDoorsOptions | undefined): { gate?: Gate } {
  return edge === undefined ? {} : { gate: createEdgeGate({ backend, routes: edge.routes }) }
}

function openRest(
  o: DoorsOptions,
  admission: Admission,
  edge?: EdgeDoorsOptions,
): Promise<RestServer> {
  const { flags, backend, clock, log } = o
  return startRestServer({
    backend,
    ...toGate(backend, edge),
    address: edge?.address ?? flags['http-address'],
    port: edge?.httpPort ?? flags['http-port'],
    maxInputBytes: flags['http-max-input-size'],
    maxConnections: flags['max-connections'],
    server: { ...SERVER_IDENTITY, name: flags.id },
    admission,
    clock,
    log: log.child({ door: edge === undefined ? 'http' : 'edge-http' }),
  })
}

function openGrpc(
  o: DoorsOptions,
  admission: Admission,
  edge?: EdgeDoorsOptions,
): Promise<GrpcServer> {
  const { flags, backend, clock, log } = o
  return startGrpcServer({
    backend,
    ...toGate(backend, edge),
    address: edge?.address ?? flags['grpc-address'],
    port: edge?.grpcPort ?? flags['grpc-port'],
    maxMessageBytes: flags['grpc-max-message-size'],
    windowBytes: flags['grpc-window-size'],
    maxConcurrentStreamsPerConnection: flags['grpc-max-concurrent-streams'],
    maxConnections: flags['max-connections'],
    identity: { ...SERVER_IDENTITY, name: flags.id },
    admission,
    clock,
    log: log.child({ door: edge === undefined ? 'grpc' : 'edge-grpc' }),
  })
}
