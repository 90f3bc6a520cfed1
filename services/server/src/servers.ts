import { type Clock, exceptDetails, type Logger, limitLog } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { startGrpcServer, toGrpcOptions } from '@tutti/grpc'
import { JsonThread, startRestServer } from '@tutti/rest'
import {
  AccessCounts,
  AccessLog,
  AccessRules,
  Admission,
  auditBudget,
  type BackendSelector,
  ClientRequests,
  type ControlGuard,
  createAccessSelector,
  createEdgeSelector,
  type EdgeAccess,
  EdgeRules,
  extensionsOf,
  type IdentityRule,
  type InferenceBackend,
  outsideShare,
  type Protocol,
  type RunningServer,
  SERVER_IDENTITY,
  type SelectorDecorator,
  toTlsFiles,
  watchRates,
} from '@tutti/serving'
import {
  joinObservers,
  logObserverFailures,
  RequestSeconds,
  type TraceSettings,
} from '@tutti/telemetry'
import type { RequestObserver, TensorMemory } from '@tutti/tensor'
import type { MetricsServer } from './metrics-server.ts'
import { type ObservedProcess, openMetricsServer } from './open-metrics-server.ts'
import { createPageSelector, type PageServerOptions, toPageOptions } from './page-server.ts'
import { namePortFlag } from './port-flag.ts'

/**
 * The options of servers for requests from outside. A request reaches the models of its host, as far as its token allows. The
 * servers have no TLS: an ingress controller or a Gateway in front of them ends it.
 */
export interface EdgeServersOptions {
  /** Function that returns the routes now: the same object as long as they have not changed. */
  readonly access: () => EdgeAccess
  readonly address: string
  /** 0 for any free port. */
  readonly grpcPort: number
  readonly httpPort: number
}

export interface ServersOptions extends ObservedProcess {
  readonly backend: InferenceBackend
  /** Servers for requests from outside; absent: none. */
  readonly edge?: EdgeServersOptions | undefined
  /** A page for people; absent for none. */
  readonly page?: PageServerOptions | undefined
  /**
   * Function that returns the rules for calls from inside: the same list as long as they have not changed. Absent: everybody may
   * call everything.
   */
  readonly identities?: (() => readonly IdentityRule[]) | undefined
  /** Check of who may load and unload models; absent: everybody may. */
  readonly guardControl?: ControlGuard
  /** Decorators of the selectors for calls from inside; each one wraps those before it in the list. */
  readonly decorators?: readonly SelectorDecorator[]
  /** Observers of the requests of clients, those outside too. */
  readonly observers?: readonly RequestObserver[]
  /** Settings of the traces of such requests in files; absent: not offered. */
  readonly traceSettings?: TraceSettings | undefined
  /** Memory of large tensors of requests; ordinary memory if absent. */
  readonly memory?: TensorMemory | undefined
  /** The metrics server if it runs already. Its owner closes it, after the others. */
  readonly metricsServer?: MetricsServer | undefined
  readonly clock: Clock
}

/** The ports that are listened on; undefined for a server that the flags do not allow. */
export interface ServerPorts {
  readonly grpcPort?: number | undefined
  readonly httpPort?: number | undefined
  readonly metricsPort?: number | undefined
  readonly edgeGrpcPort?: number | undefined
  readonly edgeHttpPort?: number | undefined
  readonly consolePort?: number | undefined
}

/** All servers of one process, over one backend and one admission. */
export interface Servers extends Omit<RunningServer, 'port'> {
  readonly ports: ServerPorts
}

/**
 * Checks the result of a drain.
 *
 * @throws ServeError SERVER_STOPPING if the servers had to refuse requests that they had accepted.
 */
export function checkAnswered(isAnswered: boolean): void {
  if (!isAnswered) throw new ServeError('SERVER_STOPPING', 'requests were not answered in time')
}

function openJsonThread({ flags, clock }: ServersOptions): JsonThread {
  const maxJsonValues = flags['http-max-json-values']
  return new JsonThread({
    maxJsonValues,
    jsonTimeoutMs: 1000 * flags['http-json-timeout-secs'],
    clock,
  })
}

type StartServer = () => Promise<RunningServer>

/** Starts the servers that the flags allow. @throws ServeError SETTING_INVALID if an address cannot be listened on. */
export async function openServers(o: ServersOptions): Promise<Servers> {
  const { flags, edge, page } = o
  const { admission, inner, outer } = prepareListeners(o)
  const ownMetrics = o.metricsServer === undefined ? await openMetricsServer(o) : undefined
  const endRateWatch = watchRates({ clock: o.clock, admission, ...toRate(flags) })
  const servers: RunningServer[] = []
  const start = async (listener: string, isAllowed: boolean, server: StartServer) => {
    if (!isAllowed) return undefined
    const started = await namePortFlag(listener, server)
    servers.push(started)
    return started.port
  }
  const close = async (): Promise<void> => {
    endRateWatch()
    await Promise.all(servers.map((server) => server.close()))
    // Last: probes and scrapes are answered while the others close.
    await ownMetrics?.close()
  }
  try {
    const ports = {
      httpPort: await start('http', flags['allow-http'], () => openRest(o, inner('http'))),
      grpcPort: await start('grpc', flags['allow-grpc'], () => openGrpc(o, inner('grpc'))),
      edgeHttpPort: await start('edge-http', edge !== undefined, () =>
        openRest(o, outer('http'), edge),
      ),
      edgeGrpcPort: await start('edge-grpc', edge !== undefined, () =>
        openGrpc(o, outer('grpc'), edge),
      ),
      ...(page && {
        consolePort: await start('console', true, () => openPage(o, inner('http'), page)),
      }),
      metricsPort: (o.metricsServer ?? ownMetrics)?.port,
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

type ListenerOf = (protocol: Protocol) => ListenerRules

/** Makes what the listeners of a process share: those for calls from inside, and those for calls from outside. */
function prepareListeners(o: ServersOptions): {
  readonly admission: Admission
  readonly inner: ListenerOf
  readonly outer: ListenerOf
} {
  const { backend, decorators = [] } = o
  const { admission, outside } = createAdmissions(o)
  const { counts, inside, fromOutside } = prepareAccess(o)
  const shared = {
    json: openJsonThread(o),
    seconds: countSeconds(o),
    observer: observeClients(o),
    counts,
  }
  const toAccess = (protocol: Protocol): ListenerAccess => {
    return (log) => {
      const select = inside(log)
      const undecorated = select ?? (() => backend)
      const decorated = decorators.reduce((one, decorate) => decorate(protocol, one), undecorated)
      // Nothing to add: calls need no selection at all.
      return decorated === undecorated ? select : decorated
    }
  }
  const outer = { ...shared, admission: outside, access: fromOutside, isOutside: true }
  return {
    admission,
    inner: (protocol) => ({ ...shared, protocol, admission, access: toAccess(protocol) }),
    outer: (protocol) => ({ ...outer, protocol }),
  }
}

/** Reads the least rate at which clients have to send and read. */
function toRate(flags: ServersOptions['flags']) {
  return {
    bytesPerSecond: flags['min-client-rate'],
    windowMs: 1000 * flags['min-client-rate-seconds'],
  }
}

function createAdmissions({ flags, metrics }: ServersOptions) {
  const admission = new Admission({
    maxRequests: flags['max-inflight-requests'],
    maxBytes: flags['max-inflight-bytes'],
    maxWaitingBytes: flags['max-waiting-bytes'],
    maxWaitingBytesPerClient: flags['max-waiting-bytes-per-client'],
  })
  metrics.addFamilies(() => admission.ended.families())
  return { admission, outside: new Admission(outsideShare(admission.bounds), admission) }
}

/** Counts the requests of clients at all listeners. */
function countSeconds({ backend, metrics }: ServersOptions): RequestSeconds {
  const seconds = new RequestSeconds((model, version) => {
    try {
      backend.resolve(model, version)
      return true
    } catch (error) {
      // Its replicas are away, and an outage is what is to be seen under its name. Other names may be of no model.
      return ServeError.from(error).reason === 'STEP_UNAVAILABLE'
    }
  })
  metrics.addFamilies(() => [seconds.family()])
  return seconds
}

/** All that observes the requests of clients, at every listener: a metric of them is one more line here. */
function observeClients({
  observers = [],
  clock,
  log,
}: ServersOptions): RequestObserver | undefined {
  const failed = logObserverFailures(log, { clock })
  return joinObservers([...observers], failed)
}

/** A function that makes the selector that decides who may call the listeners of a kind. */
type ListenerAccess = (log: AccessLog) => BackendSelector | undefined

interface ListenerRules {
  readonly protocol: Protocol
  readonly admission: Admission
  /** One for all listeners: their bodies together take no more than those of one. */
  readonly json: JsonThread
  readonly seconds: RequestSeconds
  readonly observer: RequestObserver | undefined
  readonly counts: AccessCounts
  readonly access: ListenerAccess
  readonly isOutside?: boolean
}

/** Rules and quotas are shared by gRPC and REST, and the counts by all listeners. */
function prepareAccess({ backend, edge, identities, metrics, clock }: ServersOptions): {
  readonly counts: AccessCounts
  readonly inside: ListenerAccess
  readonly fromOutside: ListenerAccess
} {
  const counts = new AccessCounts()
  metrics.addFamilies(() => counts.families())
  const shared = { counts, clock }
  const rules = identities && new AccessRules({ ...shared, rules: identities })
  const edgeRules = edge && new EdgeRules({ ...shared, access: edge.access })
  return {
    counts,
    inside: (log) => rules && createAccessSelector({ backend, rules, log }),
    fromOutside: (log) => edgeRules && createEdgeSelector({ backend, rules: edgeRules, log }),
  }
}

function openRest(
  o: ServersOptions,
  parts: ListenerRules,
  edge?: EdgeServersOptions,
): Promise<RunningServer> {
  const { flags } = o
  const log = o.log.child({ server: edge === undefined ? 'http' : 'edge-http' })
  return startRestServer({
    ...toCommon(o, parts, log),
    // From outside all clients come through a proxy.
    ...(edge && { maxConnectionsPerAddress: 0 }),
    address: edge?.address ?? flags['http-address'],
    port: edge?.httpPort ?? flags['http-port'],
    ...(edge === undefined && {
      tls: toTlsFiles(flags, 'http'),
      logSettings: log.settings,
      traceSettings: o.traceSettings,
    }),
    maxInputBytes: flags['http-max-input-size'],
    json: parts.json,
  })
}

function openPage(
  o: ServersOptions,
  parts: ListenerRules,
  page: PageServerOptions,
): Promise<RunningServer> {
  const common = toCommon(o, parts, o.log.child({ server: 'console' }))
  const select = createPageSelector(page, common)
  const maxInputBytes = o.flags['http-max-input-size']
  const { json } = parts
  return startRestServer({ ...common, ...toPageOptions(page), select, maxInputBytes, json })
}

function openGrpc(
  o: ServersOptions,
  parts: ListenerRules,
  edge?: EdgeServersOptions,
): Promise<RunningServer> {
  const { flags } = o
  const log = o.log.child({ server: edge === undefined ? 'grpc' : 'edge-grpc' })
  return startGrpcServer({
    ...toCommon(o, parts, log),
    // From outside all clients come through a proxy.
    ...(edge && { maxConnectionsPerAddress: 0 }),
    address: edge?.address ?? flags['grpc-address'],
    port: edge?.grpcPort ?? flags['grpc-port'],
    ...(edge === undefined && {
      tls: toTlsFiles(flags, 'grpc'),
      logSettings: log.settings,
      traceSettings: o.traceSettings,
    }),
    memory: o.memory,
    maxMessageBytes: flags['grpc-max-message-size'],
    windowBytes: flags['grpc-window-size'],
    maxConcurrentStreamsPerConnection: flags['grpc-max-concurrent-streams'],
    ...toGrpcOptions(flags),
  })
}

/** Not a router or a step, where clients load and unload nothing. */
function isOneProcess({ control }: InferenceBackend): boolean {
  return control?.refusal === undefined
}

/** Makes the options that both protocols take. @param log - of the listener. */
function toCommon(o: ServersOptions, parts: ListenerRules, log: Logger) {
  const { protocol, admission, seconds, observer, counts, access, isOutside = false } = parts
  const { flags, backend, guardControl, clock } = o
  const audit = flags['audit-log'] ? limitLog(log, { clock }, auditBudget) : undefined
  const accessLog = new AccessLog({ counts, log: audit })
  const select = access(accessLog)
  const extensions = extensionsOf({
    isOneProcess: isOneProcess(backend),
    hasTraces: o.traceSettings !== undefined,
    hasRegions: !isOutside && backend.regions !== undefined,
  })
  return {
    backend,
    ...(guardControl && { guardControl }),
    ...(select && { select }),
    accessLog,
    requests: new ClientRequests({
      protocol,
      isOutside,
      clock,
      seconds,
      observer,
    }),
    maxConnections: flags['max-connections'],
    maxConnectionsPerAddress: flags['max-connections-per-address'],
    identity: { ...SERVER_IDENTITY, extensions, name: flags.id },
    admission,
    clock,
    log: limitLog(log, { clock }, exceptDetails),
  }
}
