import { isOfBuiltins, isOfRouter, modelsServedBy } from '@tutti/api'
import type { Clock, Logger } from '@tutti/chassis'
import {
  type Client,
  CONTROLLER_REVISION,
  DEPLOYMENT,
  HORIZONTAL_POD_AUTOSCALER,
  HTTP_ROUTE,
  INGRESS,
  type KubeObject,
  NETWORK_POLICY,
  POD,
  POD_DISRUPTION_BUDGET,
  type Pod,
  type Resource,
  ROLE,
  ROLE_BINDING,
  SECRET,
  SERVICE,
  SERVICE_ACCOUNT,
  type Stored,
  toKeyString,
} from '@tutti/kube'
import { ENSEMBLE, type EnsembleObject, MODEL, type ModelObject, ROUTER } from '../api/kinds.ts'
import type { PodState } from '../pods/pod-state.ts'
import { ROUTER_LABEL_SELECTOR } from '../resources/router-names.ts'
import { Cache, type CacheOptions, type OpenReflector } from '../runtime/cache.ts'
import type { ChildRecord } from '../runtime/child-record.ts'
import { MANAGED_BY_SELECTOR } from '../runtime/children.ts'
import { withoutValues } from './credentials-digest.ts'
import {
  type DeploymentRecord,
  keepAutoscaler,
  keepChild,
  keepDeployment,
  keepIngress,
  keepModel,
  keepPod,
  keepRoute,
} from './kept-objects.ts'
import { stepKeysOf } from './read-ensemble.ts'
import { findRival, type Served, servedNameKey } from './served-names.ts'

/** The names of the caches' indexes. */
export const INDEX = {
  /** Models and Ensembles by `namespace/name`, the name that clients call. */
  servedName: 'servedName',
  /** Models by the `namespace/name` of the Secret that their artifacts are fetched with. */
  secret: 'secret',
  /** Ensembles by the `namespace/name` of the Secret with the token that requests from outside must bring. */
  token: 'token',
  /** Ensembles by the `namespace/name` of the Secrets with certificates of their Ingresses. */
  tls: 'tls',
  /** Ensembles by the `namespace/served name` of everything that their steps run. */
  step: 'step',
  /** Models by the `namespace/name` of the Model in whose pods they are to run. */
  host: 'host',
  /** Pods, and Deployments, by the `namespace/name` of the Models in them. */
  model: 'model',
  /** Pods of routers by their namespace, which may have thousands of other pods. */
  router: 'router',
  /** Pods with the built-ins of a namespace, by the namespace. */
  builtins: 'builtins',
} as const

export interface CachesOptions {
  readonly client: Pick<Client, 'serves'>
  readonly clock: Clock
  readonly log: Logger
  readonly openReflector: OpenReflector
  /** True to freeze objects, so that code that changes a cached object throws. For tests. */
  readonly isFrozen?: boolean
  /** Milliseconds between two questions whether the cluster has Gateway API; default 30 s. */
  readonly gatewayAskMs?: number
}

/** The caches that all controllers share, one for each kind. */
export type Caches = ReturnType<typeof createCaches>

/** Makes the caches; the manager starts them. */
export function createCaches({ client, gatewayAskMs: askMs, ...o }: CachesOptions) {
  const { openReflector, clock, log, isFrozen } = o
  // Nothing else of the caller's: the operator's own namespace would restrict every cache to itself.
  const common = { openReflector, clock, log, ...(isFrozen !== undefined && { isFrozen }) }
  const cache = <T extends KubeObject>(
    resource: Resource<T>,
    more: Partial<CacheOptions<T>> = {},
  ) => new Cache<T>({ ...common, ...more, resource })
  const ours = { labelSelector: MANAGED_BY_SELECTOR }
  const children = <T extends KubeObject, K extends ChildRecord>(
    resource: Resource<T>,
    trim: (object: Stored<T>) => Stored<K>,
    more: Partial<CacheOptions<T, K>> = {},
  ) => new Cache<T, K>({ ...common, ...ours, ...more, resource, trim })
  const ofRouters = { labelSelector: ROUTER_LABEL_SELECTOR }
  const byServedName = {
    [INDEX.servedName]: (object: Parameters<typeof servedNameKey>[0]) => [servedNameKey(object)],
  }
  return {
    models: cache(MODEL, {
      trim: keepModel,
      indexers: { ...byServedName, [INDEX.secret]: secretKeysOf, [INDEX.host]: hostKeysOf },
    }),
    ensembles: cache(ENSEMBLE, {
      indexers: { ...byServedName, ...BY_ENSEMBLE_FIELDS },
    }),
    routers: cache(ROUTER),
    pods: new Cache<Pod, PodState>({
      ...common,
      ...ours,
      resource: POD,
      trim: keepPod,
      indexers: {
        [INDEX.model]: modelKeysOf,
        [INDEX.router]: (pod) => (isOfRouter(pod) ? [pod.metadata.namespace ?? ''] : []),
        [INDEX.builtins]: (pod) => (isOfBuiltins(pod) ? [pod.metadata.namespace ?? ''] : []),
      },
    }),
    secrets: cache(SECRET, { trim: withoutValues }),
    deployments: children(DEPLOYMENT, keepDeployment, {
      indexers: { [INDEX.model]: keysOfModels },
    }),
    services: children(SERVICE, keepChild),
    serviceAccounts: children(SERVICE_ACCOUNT, keepChild),
    budgets: children(POD_DISRUPTION_BUDGET, keepChild),
    autoscalers: children(HORIZONTAL_POD_AUTOSCALER, keepAutoscaler),
    networkPolicies: children(NETWORK_POLICY, keepChild),
    revisions: cache(CONTROLLER_REVISION, ours),
    roles: children(ROLE, keepChild, ofRouters),
    roleBindings: children(ROLE_BINDING, keepChild, ofRouters),
    /** Secrets of routers with the hosts of exposed Ensembles. */
    edges: children(SECRET, keepChild, ofRouters),
    ingresses: children(INGRESS, keepIngress),
    /** HTTPRoutes; empty while the cluster has no Gateway API. */
    httpRoutes: children(HTTP_ROUTE, keepRoute, {
      isServed: () => client.serves(HTTP_ROUTE),
      ...(askMs !== undefined && { askMs }),
    }),
  }
}

function keysOfModels({ metadata, models }: Stored<DeploymentRecord>): readonly string[] {
  return models.map((name) => `${metadata.namespace}/${name}`)
}

/**
 * Lists the caches of the kinds around the pods of steps. Objects of these kinds that an owner of such pods has and does not want are
 * deleted.
 */
export function stepChildrenOf(caches: Caches) {
  const { serviceAccounts, networkPolicies, services, budgets, deployments, autoscalers } = caches
  return [serviceAccounts, networkPolicies, services, budgets, deployments, autoscalers]
}

/** Returns the keys of objects, `namespace/name`, as caches and queues use them. */
export function keysOf(objects: readonly KubeObject[]): readonly string[] {
  return objects.map(({ metadata }) => toKeyString(metadata))
}

/** Returns the namespace of a key `namespace/name`. */
export function namespaceOfKey(key: string): string {
  return key.slice(0, key.indexOf('/'))
}

/** Returns the keys of the Models that a pod serves, by its labels. */
export function modelKeysOf({ metadata }: KubeObject): readonly string[] {
  return modelsServedBy(metadata.labels).map((name) => `${metadata.namespace}/${name}`)
}

/**
 * Returns the key of the Secret with which a Model's artifacts are fetched, also if the rest of the spec is invalid; else an
 * empty list.
 */
export function secretKeysOf({ metadata, spec }: ModelObject): readonly string[] {
  const name: unknown = Object(Object(Object(spec).storage).secretRef).name
  return typeof name === 'string' ? [`${metadata.namespace}/${name}`] : []
}

/** Returns the key of the Model in whose pods a Model is to run, also if the rest of its spec is invalid; else an empty list. */
export function hostKeysOf({ metadata, spec }: ModelObject): readonly string[] {
  const name: unknown = Object(spec).runsWith
  return typeof name === 'string' ? [`${metadata.namespace}/${name}`] : []
}

function tokenOf({ metadata, spec }: EnsembleObject): readonly string[] {
  const name: unknown = Object(Object(Object(Object(spec).expose).auth).secretRef).name
  return typeof name === 'string' ? [`${metadata.namespace}/${name}`] : []
}

function tlsOf({ metadata, spec }: EnsembleObject): readonly string[] {
  const tls: unknown = Object(Object(Object(spec).expose).ingress).tls
  const names = (Array.isArray(tls) ? tls : []).map((one: unknown) => Object(one).secretName)
  return names.flatMap((name: unknown) =>
    typeof name === 'string' ? [`${metadata.namespace}/${name}`] : [],
  )
}

/** Finds another Model or Ensemble that holds the served name of this one; undefined if this one holds it. */
export function rivalOf(
  { models, ensembles }: Pick<Caches, 'models' | 'ensembles'>,
  object: Served,
): Served | undefined {
  const key = servedNameKey(object)
  return findRival(object, [
    ...models.byIndex(INDEX.servedName, key),
    ...ensembles.byIndex(INDEX.servedName, key),
  ])
}

const BY_ENSEMBLE_FIELDS = {
  [INDEX.step]: stepKeysOf,
  [INDEX.token]: tokenOf,
  [INDEX.tls]: tlsOf,
}
