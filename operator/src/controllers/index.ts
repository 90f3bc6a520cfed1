import { toNatsSettings } from '../nats/nats-flags.ts'
import { NatsTenancy } from '../nats/nats-tenancy.ts'
import { createPodClient } from '../pods/pod-client.ts'
import { RouterViews } from '../pods/router-views.ts'
import { inNamespaces } from '../runtime/in-namespaces.ts'
import { toRouterDefaults, toStepSettings } from '../serving-settings.ts'
import { createCaches, INDEX } from './caches.ts'
import type { ControllerContext, ControllerSet } from './context.ts'
import { createEnsembleControllers } from './create-ensemble-controllers.ts'
import { createModelControllers } from './model/create-model-controllers.ts'
import { createNatsServersController } from './nats-servers/nats-servers-controller.ts'

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
  const models = createModelControllers({
    ...context,
    caches,
    podClient,
    routers,
    settings,
  })
  const defaults = toRouterDefaults(context.flags, settings)
  const ensembles = createEnsembleControllers(context, {
    caches,
    routers,
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
      routers,
    ],
  }
}
