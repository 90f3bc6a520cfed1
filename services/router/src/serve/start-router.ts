import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import {
  type Clock,
  limitLog,
  logServing,
  openTracing,
  type Running,
  type StartOptions,
  systemClock,
  toDrainMs,
  withCauses,
} from '@tutti/chassis'
import { type OtherRouter, openConsole } from '@tutti/console'
import { assert } from '@tutti/errors'
import type { Json } from '@tutti/model-config'
import { scanRepositories } from '@tutti/repository'
import { openCache } from '@tutti/response-cache'
import { checkAnswered, openMetricsServer, openRegions } from '@tutti/server'
import { FLAGS_RULE, MODEL_RESOURCE_RULES } from '@tutti/serving'
import { readMetricsFlags, ServerMetrics, withTraceFlags } from '@tutti/telemetry'
import {
  type FindReplicaExecutor,
  openRouterEndpoint,
  type RouterEndpoint,
  readBrokerFlags,
  StepDirectory,
  transportFamilies,
} from '@tutti/transport'
import manifest from '../../package.json' with { type: 'json' }
import type { WatchRevisions } from '../accepted/accepted-link.ts'
import type { WatchSecret } from '../accepted/edge-secret.ts'
import { openWatches } from '../accepted/open-watches.ts'
import { openUnreadyResources } from '../accepted/unready-resources.ts'
import { clusterOf } from '../accepted/watch-objects.ts'
import { type EnsembleSource, readEnsembles } from '../catalog/ensemble-source.ts'
import { Router } from '../router.ts'
import { EnsembleComparison } from './ensemble-comparison.ts'
import { pollEnsembles } from './poll-ensembles.ts'
import type { ROUTER_FLAGS, RouterFlags } from './router-flags.ts'
import { openRouterServers } from './router-servers.ts'
import { StepDiscovery } from './step-discovery.ts'
import { StepLink } from './step-link.ts'

/**
 * So long a lost broker does not make the router unready. All routers lose it together, and a client is better told by them that
 * it may try again than by an ingress controller without a server; a router that lost it alone leaves its clients to the others then.
 * As long as direct connections carry all requests there is no need to.
 */
const BROKER_GRACE_MS = 30_000

export interface StartRouterOptions extends StartOptions<typeof ROUTER_FLAGS> {
  readonly clock?: Clock
  /** Joins the broker; `openRouterEndpoint` unless a test has its own. */
  readonly openEndpoint?: typeof openRouterEndpoint
  /** With --kubernetes; watches the API server of the pod unless a test has its own. */
  readonly watch?: WatchRevisions
  /** With --edge-secret-name; the same. */
  readonly watchSecret?: WatchSecret
}

/**
 * Serves ensembles over the steps of a broker. The servers open when the steps that are there have described themselves, or did
 * not within some seconds; the probes answer before.
 *
 * @throws ServeError if flags do not fit, a repository cannot be read or a port is taken.
 */
export async function startRouter(o: StartRouterOptions): Promise<Running> {
  const opened = new AsyncDisposableStack()
  try {
    return await serveRouter(o, opened)
  } catch (error) {
    await opened.disposeAsync()
    throw error
  }
}

async function serveRouter(o: StartRouterOptions, opened: AsyncDisposableStack): Promise<Running> {
  const { flags, log } = o
  const parts = await openParts(o, opened)
  const { name, router, steps, discovery, watches, metrics, clock } = parts
  const { accepted, edge } = watches
  const { places } = parts.directory
  let endpoint: RouterEndpoint | undefined
  let knowsSteps = false
  const causes = (): readonly string[] => {
    // The steps that were there at the start count. A later one that is slow must not take every router out of its Service.
    knowsSteps ||= discovery.isOver && steps.isSettled
    return [...findCauses(endpoint, { knowsSteps, discovery, places }), ...watches.causes()]
  }
  const health = withCauses(o.health, causes)
  const answers = new Map([['/tutti/v1/served', () => toServedAnswer(router, parts)]])
  const metricsServer = await openMetricsServer({ flags, metrics, health, answers, log })
  opened.defer(async () => metricsServer?.close())
  const joined = await joinBroker(o, parts)
  opened.defer(() => joined.close())
  endpoint = joined
  metrics.addFamilies(() => transportFamilies(joined.transport))
  parts.replicas.executor = joined.executor
  parts.replicas.foreign = () => joined.foreign
  parts.join.resolve(joined)
  // The servers should not open on an empty catalog where steps are there.
  const hasAll = (): boolean =>
    accepted === undefined || (accepted.hasSynced && router.view.isAcceptedServed)
  await discovery.begin(joined, steps, { clock, signal: o.signal, hasAll })
  const follow = await pollEnsembles(flags, { router, clock, log })
  const closing = new AbortController()
  const followed = follow(closing.signal)
  opened.defer(() => followed)
  opened.defer(() => closing.abort())
  const servers = await openRouterServers({
    ...o,
    backend: router,
    page: consoleOf(o, parts, opened),
    edgeAccess: edge && (() => edge.access),
    metrics,
    metricsServer,
    clock,
    opened,
  })
  opened.defer(logServing({ log, clock, fields: { ...servers.ports, router: name }, causes }))
  return {
    stopAccepting: () => {
      closing.abort()
      servers.stopAccepting()
      router.stop()
    },
    drain: async ({ signal }) => {
      const drained = [
        servers.drain({ timeoutMs: toDrainMs(flags) }),
        joined.drain({ signal }),
      ] as const
      const [isAnswered] = await Promise.all(drained)
      checkAnswered(isAnswered)
    },
    close: () => opened.disposeAsync(),
  }
}

function consoleOf(
  { flags, env = {} }: StartRouterOptions,
  parts: Parts,
  opened: AsyncDisposableStack,
) {
  const { router, name, clock, log } = parts
  const { version } = manifest
  const [scope, host] = [`router ${name}`, hostname()]
  const namespace = flags['repository-name']
  const isShown = flags.kubernetes && flags['console-port'] !== undefined
  const cluster = isShown
    ? openUnreadyResources({ access: clusterOf(env, clock), namespace, clock, log, opened })
    : undefined
  return openConsole({ flags, source: router, cluster, version, scope, host, clock })
}

/** Lists what requests reach, from outside too, and, for people, the steps that cannot be called, if there are any. */
function toServedAnswer({ view }: Router, { replicas, watches: { edge } }: Parts): Json {
  const foreign = replicas.foreign().map((one) => ({ ...one }))
  return {
    ...view.served,
    ...(edge && { exposed: [...edge.revisions] }),
    ...(foreign.length > 0 && { foreign }),
  }
}

/** How steps are called, and what is known of members: nothing before the broker was joined. */
function openReplicas() {
  return {
    executor: notJoined as FindReplicaExecutor,
    areRemote: true,
    foreign: (): RouterEndpoint['foreign'] => [],
    reachedOver: (_replica: string): string => '',
    otherRouters: (): readonly OtherRouter[] => [],
  }
}

type Parts = Awaited<ReturnType<typeof openParts>>

/** The router and what tells it what to serve; the broker is joined later. */
async function openParts(o: StartRouterOptions, opened: AsyncDisposableStack) {
  const { flags, env = {} } = o
  const clock = o.clock ?? systemClock
  // Steps come and go, and their messages are not trusted.
  const log = limitLog(o.log, { clock })
  const ensembles = await scanEnsembles(flags)
  const tracing = await openTracing({ ...withTraceFlags(o.settings, flags), log: o.log })
  opened.defer(() => tracing.shutdown())
  const metrics = new ServerMetrics({ latencies: readMetricsFlags(flags) })
  const cache = await openCache(flags, { clock, metrics, log: o.log, env, opened })
  const directory = new StepDirectory()
  const regions = openRegions({ flags, opened })
  const name = `router-${randomBytes(5).toString('hex')}`
  const join = Promise.withResolvers<RouterEndpoint>()
  const discovery = opened.adopt(new StepDiscovery(), (open) => open.close())
  const replicas = openReplicas()
  const router = new Router({
    replicas,
    ensembles,
    directory,
    tracing,
    metrics,
    cache,
    clock,
    log,
    foreignSteps: () => replicas.foreign(),
    reachedOver: (replica) => replicas.reachedOver(replica),
    otherRouters: () => replicas.otherRouters(),
    hasHeardSteps: () => discovery.isOver && accepted?.hasSynced !== false,
    revisionRefused: (replica) => steps.refresh(replica),
    control: () => (flags.kubernetes ? MODEL_RESOURCE_RULES : FLAGS_RULE),
    regions,
    strictReadiness: flags['strict-readiness'],
    awaitsSteps: true,
    servesAccepted: flags.kubernetes,
    nesting: { maxDepth: flags['max-bls-depth'], maxRequests: flags['max-bls-requests'] },
  })
  const { view } = router
  const watches = openWatches({ ...o, env, view, clock, log, opened })
  const { accepted } = watches
  const steps = new StepLink({ view, members: join.promise, clock, log })
  opened.defer(() => steps.close())
  return {
    name,
    router,
    directory,
    replicas,
    steps,
    discovery,
    watches,
    join,
    metrics,
    clock,
    log,
  }
}

/** From here on steps are known, and their models may call others through the router. */
async function joinBroker(o: StartRouterOptions, parts: Parts): Promise<RouterEndpoint> {
  const { name, directory, router, steps, join, replicas, clock } = parts
  const others = new EnsembleComparison({
    self: name,
    host: hostname(),
    // The accepted ensembles come to every router, a moment apart.
    ensembles: () => (o.flags.kubernetes ? [] : router.view.ensembles),
    members: join.promise,
    log: limitLog(o.log, { clock }),
  })
  const joined = await (o.openEndpoint ?? openRouterEndpoint)({
    ...readBrokerFlags(o.flags),
    member: name,
    directory,
    executor: router.nested,
    answer: router.answer,
    describe: others.describe,
    routerChanged: others.routerChanged,
    settings: { maxCalls: o.flags['max-bls-requests'] },
    clock,
    log: o.log,
    stepChanged: (replica, revisions) => steps.changed(replica, revisions),
    stepGone: (replica, error) => steps.gone(replica, error),
  })
  replicas.reachedOver = (replica) =>
    joined.direct.includes(replica) ? (joined.transport.direct?.kind ?? '') : 'nats'
  replicas.otherRouters = () =>
    joined.routers.map((other) => ({ name: other, host: others.hostOf(other) }))
  return joined
}

async function scanEnsembles(flags: RouterFlags): Promise<readonly EnsembleSource[]> {
  if (flags['model-control-mode'] !== 'none' || flags['model-repository'].length === 0) return []
  const configName = flags['model-config-name']
  const options = configName === undefined ? {} : { configName }
  return await readEnsembles(await scanRepositories(flags['model-repository'], options))
}

function notJoined(): never {
  assert(false, 'a request came before the broker was joined')
}

/** Why the process is not ready, beside its lifecycle. */
function findCauses(
  endpoint: RouterEndpoint | undefined,
  o: {
    readonly knowsSteps: boolean
    readonly discovery: StepDiscovery
    readonly places: StepDirectory['places']
  },
): readonly string[] {
  const { knowsSteps, discovery, places } = o
  if (endpoint === undefined) return ['the broker is not connected']
  const isForgiven =
    !endpoint.isConnected &&
    (endpoint.awayMs <= BROKER_GRACE_MS || reachesAll(endpoint.direct, places))
  const causes = isForgiven ? [] : [...endpoint.obstacles]
  if ((endpoint.isConnected || isForgiven) && !discovery.isOver) {
    causes.push('the steps have not been heard yet')
  }
  if (discovery.isOver && !knowsSteps) causes.push('a step has not described itself yet')
  return causes
}

/** Whether each model version that steps serve has a replica that is reached without the broker. */
function reachesAll(direct: readonly string[], { byRevision }: StepDirectory['places']): boolean {
  const reached = new Set(direct)
  const served = [...byRevision.values()]
  const isReached = served.every((all) => all.some(({ address }) => reached.has(address.replica)))
  return served.length > 0 && isReached
}
