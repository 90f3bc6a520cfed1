import { randomUUID } from 'node:crypto'
import {
  type Clock,
  createMetrics,
  type Running,
  type StartOptions,
  systemClock,
} from '@tutti/chassis'
import { freeStartMemory } from '@tutti/chassis/runtime'
import {
  type ClusterAccess,
  createClient,
  createReflector,
  createTransport,
  inClusterAccess,
} from '@tutti/kube'
import manifest from '../package.json' with { type: 'json' }
import type { OperatorConfig } from './config.ts'
import type { ControllerContext, ControllerSet } from './controllers/context.ts'
import { createControllers } from './controllers/index.ts'
import type { OPERATOR_FLAGS, OperatorFlags } from './operator-flags.ts'
import { EventRecorder } from './runtime/events.ts'
import { LeaderElection, type LeaderElectionOptions } from './runtime/leader.ts'
import { leadingClient } from './runtime/leading-client.ts'
import { Manager } from './runtime/manager.ts'
import { createRuntimeMetrics } from './runtime/metrics.ts'

export interface OperatorOptions extends Omit<StartOptions<typeof OPERATOR_FLAGS>, 'settings'> {
  readonly config: OperatorConfig
  /** Function that ends the process at once, called when the lease is lost. */
  readonly exit: (code: number) => void
  /** Function that makes the controllers; absent: all controllers of the operator. */
  readonly createControllers?: (context: ControllerContext) => ControllerSet
  readonly clock?: Clock
}

/** User agent in requests to the API server. */
const USER_AGENT = `tutti-operator/${manifest.version}`

/**
 * Starts the operator. It resolves when the caches have synced, whether this process leads or not. The caller closes it.
 *
 * @throws ServeError SERVER_NOT_READY if the caches do not sync in time; the signal's reason if it aborts.
 */
export async function startOperator(
  o: OperatorOptions,
): Promise<Running & { readonly ports: readonly number[] }> {
  const { flags, config, log, clock = systemClock } = o
  const metrics = createMetrics()
  const runtimeMetrics = createRuntimeMetrics(metrics)
  const access = await toAccess(config, clock)
  const transport = createTransport(access, { clock, log, metrics, userAgent: USER_AGENT })
  const client = createClient(transport)
  const common = { clock, log, metrics: runtimeMetrics }
  const events = new EventRecorder({
    ...common,
    client,
    controller: 'tutti.dev/operator',
    instance: config.podName,
  })
  let manager: Manager | undefined
  // With connections of its own: a renewal must not stand in line behind requests that the server holds up.
  const leaseTransport = createTransport(access, {
    clock,
    log,
    userAgent: `${USER_AGENT} leader-election`,
  })
  const election = createElection(o, {
    ...common,
    client: createClient(leaseTransport),
    onTaken: () => manager?.lead(),
  })
  const { caches, controllers } = (o.createControllers ?? createControllers)({
    ...common,
    client: election === undefined ? client : leadingClient(client, election),
    openReflector: (options) => createReflector({ ...options, client }),
    events,
    flags,
    scrapes: metrics,
    namespace: config.podNamespace,
  })
  let cancelCollection: (() => void) | undefined
  manager = new Manager({
    caches,
    controllers,
    ...(election === undefined ? {} : { election }),
    events,
    ...toListen(flags),
    health: o.health,
    metrics,
    runtimeMetrics,
    clock,
    log,
    abortAfterMs: flags['exit-timeout-secs'] * 1000 * ABORT_SHARE,
    close: async () => {
      cancelCollection?.()
      await Promise.all([transport.close(), leaseTransport.close()])
    },
  })
  await manager.start({ signal: o.signal })
  cancelCollection = clock.setTimer(FIRST_PASS_MS, freeStartMemory)
  return manager
}

/** How long the first look at all objects takes with some hundreds. It leaves as much on the heap as the start. */
const FIRST_PASS_MS = 30_000

/** Share of the grace period for reconciles to end by themselves; the rest is for those that are aborted. */
const ABORT_SHARE = 0.8

function createElection(
  o: OperatorOptions,
  parts: Pick<LeaderElectionOptions, 'client' | 'clock' | 'log' | 'metrics' | 'onTaken'>,
): LeaderElection | undefined {
  const { flags, config } = o
  if (!flags['leader-elect']) return undefined
  return new LeaderElection({
    ...parts,
    key: { namespace: config.podNamespace, name: flags['leader-elect-resource-name'] },
    identity: `${config.podName}_${randomUUID()}`,
    leaseMs: flags['leader-elect-lease-duration'] * 1000,
    renewMs: flags['leader-elect-renew-deadline'] * 1000,
    retryMs: flags['leader-elect-retry-period'] * 1000,
    onLost: () => o.exit(1),
  })
}

function toListen(flags: OperatorFlags) {
  return {
    probes: { host: flags['health-address'], port: flags['health-port'] },
    scrapes: { host: flags['metrics-address'], port: flags['metrics-port'] },
  }
}

/** Opens the access to the cluster. KUBECONFIG wins, in a pod too. */
async function toAccess(config: OperatorConfig, clock: Clock): Promise<ClusterAccess> {
  if (config.kubeconfig !== undefined) {
    // Half of the operator's memory, which a pod can do without.
    const { filesOf, openKubeConfig } = await import('@tutti/kubeconfig')
    return openKubeConfig({ files: filesOf(config.kubeconfig), clock }).access
  }
  return inClusterAccess(
    {
      KUBERNETES_SERVICE_HOST: config.serviceHost,
      KUBERNETES_SERVICE_PORT: config.servicePort,
      TUTTI_SERVICE_ACCOUNT_DIR: config.serviceAccountDir,
    },
    clock,
  )
}
