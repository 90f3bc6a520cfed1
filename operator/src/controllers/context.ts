import type { Clock, Logger, Metrics } from '@tutti/chassis'
import type { Client } from '@tutti/kube'
import type { OperatorFlags } from '../operator-flags.ts'
import type { RouterViews } from '../pods/router-views.ts'
import type { OpenReflector } from '../runtime/cache.ts'
import type { EventRecorder } from '../runtime/events.ts'
import type { ManagedCache, ManagedController } from '../runtime/manager.ts'
import type { RuntimeMetrics } from '../runtime/metrics.ts'
import type { Caches } from './caches.ts'

/** The parts that controllers are made of. */
export interface ControllerContext {
  /** Writes only while this process leads. */
  readonly client: Client
  readonly openReflector: OpenReflector
  readonly events: Pick<EventRecorder, 'record'>
  readonly metrics: RuntimeMetrics
  readonly clock: Clock
  readonly log: Logger
  readonly flags: OperatorFlags
  /** Metrics that a scrape shows beside the runtime's. */
  readonly scrapes: Metrics
  /** The operator's own, where its Lease is. */
  readonly namespace: string
  /** Port of the metrics listeners of routers and steps; default 8002. */
  readonly podPort?: number
  /** Interval for faults of a router that only a person can repair; default 60 s. */
  readonly troublePollMs?: number
}

/** The parts that every controller of our kinds is made of. */
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
