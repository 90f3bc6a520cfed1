import {
  HTTP_ROUTE,
  INGRESS,
  type KubeObject,
  type Resource,
  ROLE,
  ROLE_BINDING,
  SECRET,
} from '@tutti/kube'
import type { RouterViews } from '../pods/router-views.ts'
import type { RouterDefaults } from '../resources/router-deployment.ts'
import { ROUTER_LABEL_SELECTOR } from '../resources/router-names.ts'
import { Cache, type CacheOptions } from '../runtime/cache.ts'
import { MANAGED_BY_SELECTOR } from '../runtime/children.ts'
import { type Caches, INDEX, namespacesOf } from './caches.ts'
import type { ControllerContext, ControllerSet } from './context.ts'
import { createEnsembleController } from './ensemble/ensemble-controller.ts'
import { createRouterController } from './router/router-controller.ts'
import { routerKeyOf } from './router/router-trouble.ts'
import type { Tenancy } from './router/tenant-credential.ts'

export interface EnsembleControllersOptions {
  readonly caches: Caches
  readonly routers: Pick<RouterViews, 'look'>
  readonly defaults: RouterDefaults
  readonly tenancy: Tenancy
  /** How often it is looked whether trouble of a router is over. */
  readonly troublePollMs?: number
  /** How often a cluster without Gateway API is asked for it. */
  readonly gatewayAskMs?: number
}

/** The controllers, with the caches that only they read. */
export interface EnsembleControllers extends ControllerSet {
  /** The routers of the namespace serve something else than before. */
  routersChanged(namespace: string): void
  /** Credentials of all namespaces have to be looked at. */
  issuerChanged(): void
}

type Around = Pick<
  ControllerContext,
  'client' | 'openReflector' | 'events' | 'metrics' | 'clock' | 'log'
>

/** Makes the controllers of Routers and of Ensembles. */
export function createEnsembleControllers(
  context: Around,
  o: EnsembleControllersOptions,
): EnsembleControllers {
  const own = createOwnCaches(context, o)
  const around = { ...context, ...o.caches, ...own }
  const ensemble = createEnsembleController({ ...around, views: o.routers })
  const { defaults, tenancy, troublePollMs } = o
  const router = createRouterController({
    ...around,
    views: o.routers,
    defaults,
    tenancy,
    ...(troublePollMs !== undefined && { troublePollMs }),
  })
  return {
    caches: Object.values(own),
    controllers: [router, ensemble.controller],
    routersChanged: (namespace) => {
      router.enqueue(routerKeyOf(namespace), 'low')
      ensemble.routersChanged(namespace)
    },
    issuerChanged: () => {
      for (const key of o.caches.routers.keys()) router.enqueue(key)
    },
  }
}

function createOwnCaches(
  { client, openReflector, clock, log }: Around,
  { gatewayAskMs: askMs }: Pick<EnsembleControllersOptions, 'gatewayAskMs'>,
) {
  const open = <T extends KubeObject>(
    resource: Resource<T>,
    labelSelector: string,
    o: Pick<CacheOptions<T>, 'isServed' | 'askMs'> = {},
  ) => {
    const indexers = { [INDEX.namespace]: namespacesOf }
    return new Cache<T>({ openReflector, clock, log, resource, labelSelector, indexers, ...o })
  }
  return {
    roles: open(ROLE, ROUTER_LABEL_SELECTOR),
    roleBindings: open(ROLE_BINDING, ROUTER_LABEL_SELECTOR),
    edges: open(SECRET, ROUTER_LABEL_SELECTOR),
    ingresses: open(INGRESS, MANAGED_BY_SELECTOR),
    httpRoutes: open(HTTP_ROUTE, MANAGED_BY_SELECTOR, {
      isServed: () => client.serves(HTTP_ROUTE),
      ...(askMs !== undefined && { askMs }),
    }),
  }
}
