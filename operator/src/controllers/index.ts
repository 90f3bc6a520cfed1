import { createPodClient } from '../pods/pod-client.ts'
import { RouterViews } from '../pods/router-views.ts'
import { inNamespaces } from '../runtime/in-namespaces.ts'
import { toRouterDefaults, toStepPodSettings } from '../serving-settings.ts'
import { createCaches, INDEX, keysOf } from './caches.ts'
import type { ControllerContext, ControllerSet } from './context.ts'
import { createEnsembleController } from './ensemble/ensemble-controller.ts'
import {
  createEnsemblePods,
  type EnsemblePodsControllers,
} from './ensemble-pods/create-ensemble-pods.ts'
import { createModelControllers, type SleepingEnsembles } from './model/create-model-controllers.ts'
import { createTenancy } from './nats-servers/create-tenancy.ts'
import { createResourceMetrics } from './resource-metrics.ts'
import { createRouterControllers } from './router/create-router-controllers.ts'
import { routerKeyOf } from './router/router-trouble.ts'

/** Makes all controllers of the operator and their caches. */
export function createControllers(given: ControllerContext): ControllerSet {
  const { flags, clock, podPort } = given
  const openReflector = inNamespaces(given.openReflector, flags['watch-namespace'])
  const context = { ...given, openReflector }
  const caches = createCaches(context)
  createResourceMetrics(context.scrapes, caches)
  const podClient = createPodClient({ clock, ...(podPort !== undefined && { port: podPort }) })
  const settings = toStepPodSettings(context)
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
        for (const key of keysOf(cache.inNamespace(namespace))) controller.enqueue(key, 'low')
      }
    },
  })
  const parts = { ...context, caches, views }
  const models = createModelControllers({
    ...parts,
    podClient,
    settings,
    sleepingEnsembles: madeLater(() => ensemblePods.sleeping),
  })
  const { controller: model, scaler, demand, groups } = models
  const ensemblePods: EnsemblePodsControllers = createEnsemblePods({
    ...parts,
    podClient,
    groups,
    onProblem: (key) => model.enqueue(key),
    isWanted: (namespace, name) => demand.isWanted(namespace, name),
  })
  const defaults = toRouterDefaults(flags, settings)
  const broker = createTenancy({
    ...parts,
    onIssuerChanged: () => {
      for (const key of caches.routers.keys()) router.enqueue(key)
    },
  })
  const { controller: router, scaler: builtinsScaler } = createRouterControllers({
    ...parts,
    podClient,
    settings,
    defaults,
    tenancy: broker.tenancy,
  })
  const ensemble = createEnsembleController({ ...parts, groups })
  const pods = [ensemblePods.controller, ensemblePods.scaler]
  const served = [router, ensemble, ...pods, model, scaler, demand]
  return {
    caches: [...Object.values(caches), ...broker.caches],
    controllers: [...broker.controllers, ...served, builtinsScaler, views],
  }
}

/** The controllers of Models and of the pods of Ensembles need each other. */
function madeLater(find: () => SleepingEnsembles): SleepingEnsembles {
  return {
    namespaces: () => find().namespaces(),
    wake: (namespace, names) => find().wake(namespace, names),
    wakeOne: (key, uid) => find().wakeOne(key, uid),
  }
}
