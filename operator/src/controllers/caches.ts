import {
  CONTROLLER_REVISION,
  DEPLOYMENT,
  HORIZONTAL_POD_AUTOSCALER,
  type KubeObject,
  NETWORK_POLICY,
  POD,
  POD_DISRUPTION_BUDGET,
  type Resource,
  SECRET,
  SERVICE,
  SERVICE_ACCOUNT,
  type Stored,
  toKeyString,
} from '@tutti/kube'
import { ENSEMBLE, type EnsembleObject, MODEL, type ModelObject, ROUTER } from '../api/kinds.ts'
import { isOfRouter, MODEL_LABEL } from '../resources/step-labels.ts'
import { Cache, type CacheOptions, type OpenReflector } from '../runtime/cache.ts'
import { MANAGED_BY_SELECTOR } from '../runtime/children.ts'
import type { ControllerContext } from './context.ts'
import { stepKeysOf } from './ensemble/read-ensemble.ts'
import { withoutValues } from './model/credentials-digest.ts'
import { findRival, type Served, servedNameKey } from './served-names.ts'

/** Indexes of the caches. */
export const INDEX = {
  /** Of Models and Ensembles: `namespace/name`, the name that clients call. */
  servedName: 'servedName',
  /** Of all: the namespace. */
  namespace: 'namespace',
  /** Of Models: `namespace/name` of the Secret that their artifacts are fetched with. */
  secret: 'secret',
  /** Of Ensembles: `namespace/name` of the Secret with the token that requests from outside must bring. */
  token: 'token',
  /** Of Ensembles: `namespace/served name` of everything that their steps run. */
  step: 'step',
  /** Of pods: `namespace/name` of their Model. */
  model: 'model',
  /** Of pods: the namespace, of those of routers. A namespace may have thousands of others. */
  router: 'router',
} as const

type Around = Pick<ControllerContext, 'clock' | 'log'> & {
  readonly openReflector: OpenReflector
  /** True in tests: a change of a cached object is then an error where it happens. */
  readonly isFrozen?: boolean
}

/** What controllers read, each kind once for all of them. */
export type Caches = ReturnType<typeof createCaches>

/** Makes the caches; the manager starts them. */
export function createCaches({ openReflector, clock, log, isFrozen }: Around) {
  // Nothing else of the caller's: the operator's own namespace would restrict every cache to itself.
  const around = { openReflector, clock, log, ...(isFrozen !== undefined && { isFrozen }) }
  const cache = <T extends KubeObject>(
    resource: Resource<T>,
    o: Partial<CacheOptions<T>> = {},
  ): Cache<T> =>
    new Cache({
      ...around,
      ...o,
      resource,
      indexers: { [INDEX.namespace]: namespacesOf, ...o.indexers },
    })
  const ours = { labelSelector: MANAGED_BY_SELECTOR }
  const byServedName = {
    [INDEX.servedName]: (object: Parameters<typeof servedNameKey>[0]) => [servedNameKey(object)],
  }
  return {
    models: cache(MODEL, { indexers: { ...byServedName, [INDEX.secret]: secretOf } }),
    ensembles: cache(ENSEMBLE, {
      indexers: { ...byServedName, [INDEX.step]: stepKeysOf, [INDEX.token]: tokenOf },
    }),
    routers: cache(ROUTER),
    pods: cache(POD, {
      ...ours,
      indexers: {
        [INDEX.model]: modelOf,
        [INDEX.router]: (pod) => (isOfRouter(pod) ? namespacesOf(pod) : []),
      },
    }),
    secrets: cache(SECRET, { trim: withoutValues }),
    deployments: cache(DEPLOYMENT, ours),
    services: cache(SERVICE, ours),
    serviceAccounts: cache(SERVICE_ACCOUNT, ours),
    budgets: cache(POD_DISRUPTION_BUDGET, ours),
    autoscalers: cache(HORIZONTAL_POD_AUTOSCALER, ours),
    networkPolicies: cache(NETWORK_POLICY, ours),
    revisions: cache(CONTROLLER_REVISION, ours),
  }
}

/** Values of the index of namespaces. */
export function namespacesOf({ metadata }: KubeObject): readonly string[] {
  return metadata.namespace === undefined ? [] : [metadata.namespace]
}

/** What a cache with the index of namespaces has of the namespace of an object. */
export function inNamespaceOf<T extends KubeObject>(
  object: KubeObject,
  cache: Cache<T>,
): readonly Stored<T>[] {
  return cache.byIndex(INDEX.namespace, object.metadata.namespace ?? '')
}

/** The keys of objects of a namespace, as caches and queues have them. */
export function keysOf(objects: readonly KubeObject[]): readonly string[] {
  return objects.map(({ metadata }) => toKeyString(metadata))
}

/** The namespace in a key. */
export function namespaceOfKey(key: string): string {
  return key.slice(0, key.indexOf('/'))
}

/** The Model of a pod, of the two or of any child that carries the label. */
export function modelOf({ metadata }: KubeObject): readonly string[] {
  const name = metadata.labels?.[MODEL_LABEL]
  return name === undefined ? [] : [`${metadata.namespace}/${name}`]
}

function secretOf({ metadata, spec }: ModelObject): readonly string[] {
  const name: unknown = Object(Object(Object(spec).storage).secretRef).name
  return typeof name === 'string' ? [`${metadata.namespace}/${name}`] : []
}

function tokenOf({ metadata, spec }: EnsembleObject): readonly string[] {
  const name: unknown = Object(Object(Object(Object(spec).expose).auth).secretRef).name
  return typeof name === 'string' ? [`${metadata.namespace}/${name}`] : []
}

/** Who has the served name of a Model or an Ensemble, if it is another. */
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
