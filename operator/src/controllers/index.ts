import { toNatsSettings } from '../nats/nats-flags.ts'
import { NatsTenancy } from '../nats/nats-tenancy.ts'
import { createPodClient } from '../pods/pod-client.ts'
import { RouterViews } from '../pods/router-views.ts'
import { inNamespaces } from '../runtime/in-namespaces.ts'
import { toRouterDefaults, toStepSettings } from '../serving-settings.ts'
import { createCaches, INDEX, keysOf } from './caches.ts'
import type { ControllerContext, ControllerSet } from './context.ts'
import { createEnsembleController } from './ensemble/ensemble-controller.ts'
import { createModelControllers } from './model/create-model-controllers.ts'
import { createNatsServersController } from './nats-servers/nats-servers-controller.ts'
import { createRouterController } from './router/router-controller.ts'
import { routerKeyOf } from './router/router-trouble.ts'

/** Makes every controller of the operator: the one place where they are listed. */
export function createControllers(given: ControllerContext): ControllerSet {
  const { flags, clock, podPort } = given
  const openReflector = inNamespaces(given.openReflector, flags['watch-namespace'])
  const context = { ...given, openReflector }
  const { prefix, lifetimeMs, servers } = toNatsSettings(flags)
  const tenancy = new NatsTenancy({ ...context, prefix, lifetimeMs, servers })
  const caches = createCaches(context)
  const podClient = createPodClient({ clock, ...(podPort !== undefined && { port: podPort }) })
  const settings = toStepSettings(context)
  const views = new RouterViews({
    ...context,
    client: podClient,
    routersOf: (namespace) => caches.pods.byIndex(INDEX.router, namespace),
    namespaces: () => caches.pods.indexValues(INDEX.router),
    onChange: (namespace) => {
      router.enqueue(routerKeyOf(namespace), 'low')
      for (const [controller, cache] of [
        [ensemble, caches.ensembles],
        [model, caches.models],
      ] as const) {
        const concerned = keysOf(cache.inNamespace(namespace))
        for (const key of concerned) controller.enqueue(key, 'low')
      }
    },
  })
  const parts = { ...context, caches, views }
  const { controller: model, scaler } = createModelControllers({ ...parts, podClient, settings })
  const defaults = toRouterDefaults(flags, settings)
  const router = createRouterController({ ...parts, defaults, tenancy })
  const ensemble = createEnsembleController(parts)
  const onIssuerChanged = (): void => {
    for (const key of caches.routers.keys()) router.enqueue(key)
  }
  const broker = createNatsServersController({ ...context, tenancy, onIssuerChanged })
  return {
    caches: [...Object.values(caches), ...broker.caches],
    controllers: [...broker.controllers, router, ensemble, model, scaler, views],
  }
}
