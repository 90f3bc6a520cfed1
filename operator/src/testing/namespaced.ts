import type { PlainClient, PlainObject } from '@tutti/kube/testing'

const GROUPS: Readonly<Record<string, string>> = {
  models: 'apis/tutti.dev/v1alpha1',
  ensembles: 'apis/tutti.dev/v1alpha1',
  routers: 'apis/tutti.dev/v1alpha1',
  toys: 'apis/test.tutti.dev/v1',
  deployments: 'apis/apps/v1',
  controllerrevisions: 'apis/apps/v1',
  ingresses: 'apis/networking.k8s.io/v1',
  networkpolicies: 'apis/networking.k8s.io/v1',
  horizontalpodautoscalers: 'apis/autoscaling/v2',
  poddisruptionbudgets: 'apis/policy/v1',
  roles: 'apis/rbac.authorization.k8s.io/v1',
  rolebindings: 'apis/rbac.authorization.k8s.io/v1',
  httproutes: 'apis/gateway.networking.k8s.io/v1',
  resourceclaims: 'apis/resource.k8s.io/v1',
  resourceclaimtemplates: 'apis/resource.k8s.io/v1',
}

/**
 * Returns the API path of an object, e.g. `/apis/apps/v1/namespaces/N/deployments/NAME`, or without `name` that of all of a kind.
 */
export type Paths = (plural: string, name?: string) => string

export function pathsIn(namespace: string): Paths {
  return (plural, name) => {
    const base = `/${GROUPS[plural] ?? 'api/v1'}/namespaces/${namespace}/${plural}`
    return name === undefined ? base : `${base}/${name}`
  }
}

/** Makes a function that applies a Model or an Ensemble as a user would. */
export function applierOf(plain: PlainClient, path: Paths) {
  return (kind: 'Model' | 'Ensemble', name: string, spec: PlainObject): Promise<PlainObject> =>
    plain.apply(path(kind === 'Model' ? 'models' : 'ensembles', name), {
      apiVersion: 'tutti.dev/v1alpha1',
      kind,
      metadata: { name },
      spec,
    })
}

export const isThere = (object: PlainObject | undefined): boolean => object !== undefined
export const isGone = (object: PlainObject | undefined): boolean => object === undefined

/**
 * True if a condition of the object's newest generation is as wanted.
 *
 * @param wanted - `TYPE=STATUS` or `TYPE=STATUS/REASON`, e.g. `Accepted=False/SchemaPending`.
 */
export function hasCondition(object: PlainObject | undefined, wanted: string): boolean {
  return (object?.['status']?.conditions ?? []).some(
    ({ type, status, reason, observedGeneration }: PlainObject) =>
      observedGeneration === object?.['metadata'].generation &&
      [`${type}=${status}`, `${type}=${status}/${reason}`].includes(wanted),
  )
}
