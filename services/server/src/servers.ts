import type { Clock, FlagValues, Logger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { Admission } from './admission.ts'
import { outsideShare } from './admission-bounds.ts'
import { createEdgeSelector, type EdgeRoute } from './edge/edge-selector.ts'
import { startGrpcServer } from './grpc/grpc-server.ts'
import type { InferenceBackend } from './inference-backend.ts'
import type { RunningServer } from './listen.ts'
import type { ServerMetrics } from './metrics.ts'
import {
  type HealthReading,
  type JsonAnswers,
  type MetricsServer,
  startMetricsServer,
} from './metrics-server.ts'
import type { ControlGuard } from './request/control-guard.ts'
import { startRestServer } from './rest/rest-server.ts'
import type { SERVER_FLAGS } from './server-flags.ts'
import { SERVER_IDENTITY } from './server-identity.ts'

/** Servers for requests from outside: each request reaches the models that its host and token lead to. */
export interface EdgeServersOptions {
  /** See EdgeSelectorOptions. */
  readonly routes: () => readonly EdgeRoute[]
  readonly address: string
  /** 0 for any free port. */
  readonly grpcPort: number
  readonly httpPort: number
}

export interface ServersOptions {
  readonly flags: FlagValues<typeof SERVER_FLAGS>
  readonly backend: InferenceBackend
  readonly metrics: ServerMetrics
  /** Absent: nothing is served to the outside. */
  readonly edge?: EdgeServersOptions | undefined
  /** Who may load and unload models; everybody if absent. */
  readonly guardControl?: ControlGuard
  /** For `/livez` and `/readyz` on the metrics port. */
  readonly health?: HealthReading
  /** For further paths on the metrics port. */
  readonly answers?: JsonAnswers
  /** The metrics server if it runs already; closed with the others. */
  readonly metricsServer?: MetricsServer | undefined
  readonly clock: Clock
  readonly log: Logger
}

/** The ports that are listened on; undefined for a server that the flags do not allow. */
export interface ServerPorts {
  readonly grpcPort?: number | undefined
  readonly httpPort?: number | undefined
  readonly metricsPort?: number | undefined
  readonly edgeGrpcPort?: number | undefined
  readonly edgeHttpPort?: number | undefined
}

/** All servers of one process, over one backend and one admission. */
export interface Servers extends Omit<RunningServer, 'port'> {
  readonly ports: ServerPorts
}

/** For the end of a drain. @throws ServeError SERVER_STOPPING if the servers had to refuse requests that they had accepted. */
export function checkAnswered(isAnswered: boolean): void {
  if (!isAnswered) throw new ServeError('SERVER_STOPPING', 'requests were not answered in time')
}

/**
 * Starts only the metrics server, if the flags allow it: for executables that take long to start and must answer probes
 * meanwhile. They start the others later, with it as `metricsServer`.
 *
 * @throws ServeError SETTING_INVALID if the address cannot be listened on.
 */
export async function openMetricsServer(
  o: Pick<ServersOptions, 'flags' | 'metrics' | 'health' | 'answers' | 'log'>,
): Promise<MetricsServer | undefined> {
  const { flags, metrics, health, answers, log } = o
  if (!flags['allow-metrics']) return undefined
  return await startMetricsServer({
    address: flags['metrics-address'],
    port: flags['metrics-port'],
    metrics,
    log: log.child({ server: 'metrics' }),
    ...(health !== undefined && { health }),
    ...(answers !== undefined && { answers }),
  })
}

/** Starts the servers that the flags allow. @throws ServeError SETTING_INVALID if an address cannot be listened on. */
export async function openServers(o: ServersOptions): Promise<Servers> {
  const { flags, edge } = o
  const admission = new Admission({
    maxRequests: flags['max-inflight-requests'],
    maxBytes: flags['max-inflight-bytes'],
  })
  const outside = new Admission(outsideShare(admission.bounds), admission)
  const metrics = o.metricsServer ?? (await openMetricsServer(o))
  const servers: RunningServer[] = []
  const start = async (isAllowed: boolean, server: () => Promise<RunningServer>) => {
    if (!isAllowed) return undefined
    const started = await server()
    servers.push(started)
    return started.port
  }
  const close = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.close()))
    // Last: probes and scrapes are answered while the others close.
    await metrics?.close()
  }
  try {
    const ports = {
      httpPort: await start(flags['allow-http'], () => openRest(o, admission)),
      grpcPort: await start(flags['allow-grpc'], () => openGrpc(o, admission)),
      edgeHttpPort: await start(edge !== undefined, () => openRest(o, outside, edge)),
      edgeGrpcPort: await start(edge !== undefined, () => openGrpc(o, outside, edge)),
      metricsPort: metrics?.port,
    }
    return {
      ports,
      stopAccepting: () => servers.forEach((server) => server.stopAccepting()),
      drain: async (limit) => {
        const drained = await Promise.all(servers.map((server) => server.drain(limit)))
        return drained.every((isAnswered) => isAnswered)
      },
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

function openRest(
  o: ServersOptions,
  admission: Admission,
  edge?: EdgeServersOptions,
): Promise<RunningServer> {
  const { flags } = o
  return startRestServer({
    ...toCommon(o, admission, edge),
    address: edge?.address ?? flags['http-address'],
    port: edge?.httpPort ?? flags['http-port'],
    maxInputBytes: flags['http-max-input-size'],
    log: o.log.child({ server: edge === undefined ? 'http' : 'edge-http' }),
  })
}

function openGrpc(
  o: ServersOptions,
  admission: Admission,
  edge?: EdgeServersOptions,
): Promise<RunningServer> {
  const { flags } = o
  return startGrpcServer({
    ...toCommon(o, admission, edge),
    address: edge?.address ?? flags['grpc-address'],
    port: edge?.grpcPort ?? flags['grpc-port'],
    maxMessageBytes: flags['grpc-max-message-size'],
    windowBytes: flags['grpc-window-size'],
    maxConcurrentStreamsPerConnection: flags['grpc-max-concurrent-streams'],
    log: o.log.child({ server: edge === undefined ? 'grpc' : 'edge-grpc' }),
  })
}

/** What both protocols take. */
function toCommon(o: ServersOptions, admission: Admission, edge: EdgeServersOptions | undefined) {
  const { flags, backend, guardControl, clock } = o
  return {
    backend,
    ...(guardControl && { guardControl }),
    ...(edge && { select: createEdgeSelector({ backend, routes: edge.routes }) }),
    maxConnections: flags['max-connections'],
    identity: { ...SERVER_IDENTITY, name: flags.id },
    admission,
    clock,
  }
}
