import type { Clock, Logger, Metrics } from '@tutti/chassis'
import type { Client } from '@tutti/kube'
import type { OperatorFlags } from '../operator-flags.ts'
import type { RouterViews } from '../pods/router-views.ts'
import type { OpenReflector } from '../runtime/cache.ts'
import type { EventRecorder } from '../runtime/events.ts'
import type { ManagedCache, ManagedController } from '../runtime/manager.ts'
import type { RuntimeMetrics } from '../runtime/metrics.ts'
import type { Caches } from './caches.ts'

/** The parts from which all controllers are made. */
export interface ControllerContext {
  /** Client whose writes fail while this process does not lead. */
  readonly client: Client
  readonly openReflector: OpenReflector
  readonly events: Pick<EventRecorder, 'record'>
  readonly metrics: RuntimeMetrics
  readonly clock: Clock
  readonly log: Logger
  readonly flags: OperatorFlags
  /** Metrics that a scrape shows beside the runtime's. */
  readonly scrapes: Metrics
  /** Namespace of the operator and its Lease. */
  readonly namespace: string
  /** Port of the metrics listeners of routers and steps; default 8002. */
  readonly podPort?: number
  /** Milliseconds between two looks at a router with a fault that only a person can repair; default 60 s. */
  readonly troublePollMs?: number
  /** Milliseconds between two looks at the load of pods; see ReplicaScaler. */
  readonly scalingMs?: number
}

/** The parts of the controllers of Models, Ensembles and Routers. */
export interface ControllerParts
  extends Pick<ControllerContext, 'client' | 'events' | 'metrics' | 'clock' | 'log'> {
  readonly caches: Caches
  /** The revisions that each ready router serves. */
  readonly views: Pick<RouterViews, 'look'>
}

/** Controllers, and the caches that they read; the manager starts both. */
export interface ControllerSet {
  readonly caches: readonly ManagedCache[]
  readonly controllers: readonly ManagedController[]
}
