import type { Clock, Logger, Metrics } from '@tutti/chassis'
import type { Client } from '@tutti/kube'
import { toNatsSettings } from '../nats/nats-flags.ts'
import { NatsTenancy } from '../nats/nats-tenancy.ts'
import type { OperatorFlags } from '../operator-flags.ts'
import { createPodClient } from '../pods/pod-client.ts'
import { RouterPolling } from '../pods/router-polling.ts'
import { RouterViews } from '../pods/router-views.ts'
import type { OpenReflector } from '../runtime/cache.ts'
import type { EventRecorder } from '../runtime/events.ts'
import { inNamespaces } from '../runtime/in-namespaces.ts'
import type { ManagedCache, ManagedController } from '../runtime/manager.ts'
import type { RuntimeMetrics } from '../runtime/metrics.ts'
import { toRouterDefaults, toStepSettings } from '../serving-settings.ts'
import { createCaches, INDEX } from './caches.ts'
import { createEnsembleControllers } from './create-ensemble-controllers.ts'
import { createModelControllers } from './model/create-model-controllers.ts'
import { RouterStates } from './namespace/router-states.ts'
import { createNatsServersController } from './nats-servers/nats-servers-controller.ts'

/** What controllers are made of. */
export interface ControllerContext {
  /** Writes only while this process leads. */
  readonly client: Client
  readonly openReflector: OpenReflector
  readonly events: EventRecorder
  readonly metrics: RuntimeMetrics
  readonly clock: Clock
  readonly log: Logger
  readonly flags: OperatorFlags
  /** What a scrape shows beside the runtime's. */
  readonly scrapes: Metrics
  /** The operator's own, where its Lease is. */
  readonly namespace: string
  /** Of the metrics listeners of routers and steps; default 8002. */
  readonly podPort?: number
  /** How often it is looked whether trouble of a router is over; default 60 s. */
  readonly troublePollMs?: number
}

/** Controllers, and the caches that they read; the manager starts both. */
export interface ControllerSet {
  readonly caches: readonly ManagedCache[]
  readonly controllers: readonly ManagedController[]
}

/** Makes every controller of the operator: the one place where they are listed. */
export function createControllers(given: ControllerContext): ControllerSet {
  const namespaces = given.flags['watch-namespace']
  const context = { ...given, openReflector: inNamespaces(given.openReflector, namespaces) }
  const { prefix, lifetimeMs, servers } = toNatsSettings(context.flags)
  const tenancy = new NatsTenancy({ ...context, prefix, lifetimeMs, servers })
  const caches = createCaches(context)
  const { clock, podPort, troublePollMs } = context
  const podClient = createPodClient({ clock, ...(podPort !== undefined && { port: podPort }) })
  const settings = toStepSettings(context)
  const routers = new RouterViews({
    ...context,
    client: podClient,
    routersOf: (namespace) => caches.pods.byIndex(INDEX.router, namespace),
    namespaces: () => caches.pods.indexValues(INDEX.router),
    onChange: (namespace) => {
      ensembles.routersChanged(namespace)
      models.routersChanged(namespace)
    },
  })
  const states = new RouterStates()
  const models = createModelControllers({
    ...context,
    caches,
    podClient,
    routers,
    states,
    settings,
  })
  const defaults = toRouterDefaults(context.flags, settings)
  const ensembles = createEnsembleControllers(context, {
    caches,
    routers,
    states,
    defaults,
    tenancy,
    ...(troublePollMs !== undefined && { troublePollMs }),
  })
  const onIssuerChanged = (): void => ensembles.issuerChanged()
  const broker = createNatsServersController({ ...context, tenancy, onIssuerChanged })
  return {
    caches: [...Object.values(caches), ...ensembles.caches, ...broker.caches],
    controllers: [
      ...broker.controllers,
      ...ensembles.controllers,
      models.controller,
      models.scaler,
      new RouterPolling(routers, podClient),
    ],
  }
}
