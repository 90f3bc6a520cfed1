import { randomBytes } from 'node:crypto'
import {
  type Clock,
  createTracing,
  type Logger,
  limitLog,
  logServing,
  type Running,
  type StartOptions,
  systemClock,
  toDrainMs,
  withCauses,
} from '@tutti/chassis'
import { assert } from '@tutti/errors'
import { scanRepositories } from '@tutti/repository'
import {
  checkAnswered,
  type Doors,
  FLAGS_RULE,
  MODEL_RESOURCE_RULES,
  openMetricsDoor,
  ServerMetrics,
} from '@tutti/server'
import {
  type FindReplicaExecutor,
  openRouterEndpoint,
  type RouterEndpoint,
  StepDirectory,
  toBrokerOptions,
} from '@tutti/transport'
import { AcceptedLink, type WatchRevisions } from '../accepted/accepted-link.ts'
import { clusterOf, watchRevisions } from '../accepted/watch-revisions.ts'
import { type EnsembleSource, readEnsembles } from '../ensemble-source.ts'
import { Router, type RouterOptions } from '../router.ts'
import { EnsembleComparison } from './ensemble-comparison.ts'
import { pollEnsembles } from './poll-ensembles.ts'
import type { ROUTER_FLAGS, RouterFlags } from './router-flags.ts'
import { openRouterServers } from './router-servers.ts'
import { StepDiscovery } from './step-discovery.ts'
import { StepLink } from './step-link.ts'

/**
 * So long a lost broker does not make the router unready. All routers lose it together, and a client is better told by them that
 * it may try again than by an ingress controller without a server; a router that lost it alone leaves its clients to the others then.
 */
const BROKER_GRACE_MS = 30_000

export interface StartRouterOptions extends StartOptions<typeof ROUTER_FLAGS> {
  readonly clock?: Clock
  /** Joins the broker; `openRouterEndpoint` unless a test has its own. */
  readonly openEndpoint?: typeof openRouterEndpoint
  /** With --kubernetes; watches the API server of the pod unless a test has its own. */
  readonly watch?: WatchRevisions
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
  const clock = o.clock ?? systemClock
  // Steps come and go, and their messages are not trusted.
  const stepLog = limitLog(log, { clock })
  const ensembles = await scanEnsembles(flags)
  const tracing = createTracing(o.settings)
  opened.defer(() => tracing.shutdown())
  const metrics = new ServerMetrics()
  const directory = new StepDirectory()
  const name = `router-${randomBytes(5).toString('hex')}`

  const join = Promise.withResolvers<RouterEndpoint>()
  let endpoint: RouterEndpoint | undefined
  const discovery = opened.adopt(new StepDiscovery(), (open) => open.close())
  const replicas = { executor: notJoined as FindReplicaExecutor }
  const router = makeRouter(o, {
    name,
    replicas,
    ensembles,
    directory,
    tracing,
    metrics,
    clock,
    log: stepLog,
    hasHeardSteps: () => discovery.isOver && accepted?.hasSynced !== false,
    revisionRefused: (replica) => steps.refresh(replica),
  })
  const accepted = openAccepted({ ...o, clock, log: stepLog, router })
  opened.defer(async () => accepted?.close())
  const steps = new StepLink({ view: router.view, members: join.promise, clock, log: stepLog })
  opened.defer(() => steps.close())
  const causes = () => [...findCauses(endpoint, steps, discovery), ...findUnread(accepted)]
  const health = withCauses(o.health, causes)
  const answers = new Map([['/tutti/v1/served', () => router.view.served]])
  const metricsServer = await openMetricsDoor({ flags, metrics, health, answers, log })
  opened.defer(async () => metricsServer?.close())
  const joined = await joinBroker(o, { name, directory, router, steps, join, clock })
  opened.defer(() => joined.close())
  endpoint = joined
  replicas.executor = joined.executor
  join.resolve(joined)
  // The servers should not open on an empty catalog where steps are there.
  await discovery.begin(joined, steps, { clock, signal: o.signal })
  const follow = await pollEnsembles(flags, { router, clock, log })
  const closing = new AbortController()
  const followed = follow(closing.signal)
  opened.defer(() => followed)
  opened.defer(() => closing.abort())
  const doorParts = { backend: router, metrics, metricsServer, clock, opened }
  const doors = await openRouterServers({ ...o, ...doorParts })
  opened.defer(logServing({ log, clock, fields: { ...doors.ports, router: name }, causes }))
  return toRunning({ closing, doors, router, endpoint: joined, drainMs: toDrainMs(flags), opened })
}

function makeRouter(
  { flags }: StartRouterOptions,
  o: Pick<RouterOptions, 'name' | 'ensembles' | 'directory' | 'tracing' | 'metrics'> &
    Pick<RouterOptions, 'clock' | 'log' | 'replicas' | 'hasHeardSteps' | 'revisionRefused'>,
): Router {
  const router = new Router({
    ...o,
    strictReadiness: flags['strict-readiness'],
    awaitsSteps: true,
    servesAccepted: flags.kubernetes,
    nesting: { maxDepth: flags['max-bls-depth'], maxRequests: flags['max-bls-requests'] },
  })
  router.allowControl(flags.kubernetes ? MODEL_RESOURCE_RULES : FLAGS_RULE)
  return router
}

function toRunning(o: {
  readonly closing: AbortController
  readonly doors: Doors
  readonly router: Router
  readonly endpoint: RouterEndpoint
  readonly drainMs: number
  readonly opened: AsyncDisposableStack
}): Running {
  const { closing, doors, router, endpoint, drainMs, opened } = o
  return {
    stopAccepting: () => {
      closing.abort()
      doors.stopAccepting()
      router.stop()
    },
    drain: async ({ signal }) => {
      const drained = [doors.drain({ timeoutMs: drainMs }), endpoint.drain({ signal })] as const
      const [isAnswered] = await Promise.all(drained)
      checkAnswered(isAnswered)
    },
    close: () => opened.disposeAsync(),
  }
}

/** From here on steps are known, and their models may call others through the router. */
function joinBroker(
  o: StartRouterOptions,
  parts: {
    readonly name: string
    readonly directory: StepDirectory
    readonly router: Router
    readonly steps: StepLink
    readonly join: { readonly promise: Promise<RouterEndpoint> }
    readonly clock: Clock
  },
): Promise<RouterEndpoint> {
  const { name, directory, router, steps, join, clock } = parts
  const others = new EnsembleComparison({
    self: name,
    // What was accepted comes to every router, a moment apart.
    ensembles: () => (o.flags.kubernetes ? [] : router.view.ensembles),
    members: join.promise,
    log: limitLog(o.log, { clock }),
  })
  return (o.openEndpoint ?? openRouterEndpoint)({
    broker: toBrokerOptions(o.flags),
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
}

async function scanEnsembles(flags: RouterFlags): Promise<readonly EnsembleSource[]> {
  if (flags['model-control-mode'] !== 'none' || flags['model-repository'].length === 0) return []
  const configName = flags['model-config-name']
  const options = configName === undefined ? {} : { configName }
  return await readEnsembles(await scanRepositories(flags['model-repository'], options))
}

/** Watches what the operator has accepted, where that is what is served. */
function openAccepted(
  o: Pick<StartRouterOptions, 'flags' | 'env' | 'watch'> & {
    readonly clock: Clock
    readonly log: Logger
    readonly router: Router
  },
): AcceptedLink | undefined {
  const { flags, env = {}, clock, log, router } = o
  if (!flags.kubernetes) return undefined
  const namespace = flags['repository-name']
  const watch = o.watch ?? watchRevisions({ access: clusterOf(env, clock), namespace, clock, log })
  return new AcceptedLink({ view: router.view, watch, log })
}

function findUnread(accepted: AcceptedLink | undefined): readonly string[] {
  return accepted?.hasSynced === false ? ['the accepted revisions have not been read yet'] : []
}

function notJoined(): never {
  assert(false, 'a request came before the broker was joined')
}

/** What holds the process back from being ready, beside what its lifecycle says. */
function findCauses(
  endpoint: RouterEndpoint | undefined,
  steps: StepLink,
  discovery: StepDiscovery,
): readonly string[] {
  if (endpoint === undefined) return ['the broker is not connected']
  const isForgiven = !endpoint.isConnected && endpoint.awayMs <= BROKER_GRACE_MS
  const causes = isForgiven ? [] : [...endpoint.obstacles]
  if ((endpoint.isConnected || isForgiven) && !discovery.isOver) {
    causes.push('the steps have not been heard yet')
  }
  if (!steps.isSettled) causes.push('a step has not described itself yet')
  return causes
}
