import type { KubeObject, ObjectKey } from './object.ts'

declare const OBJECT: unique symbol

/** The names that the API server uses for a kind, so that no discovery is needed. T is the type of the kind's objects. */
export interface Resource<T extends KubeObject = KubeObject> {
  /** Empty for the core group. */
  readonly group: string
  readonly version: string
  /** Lower case, as in paths. */
  readonly plural: string
  readonly kind: string
  readonly namespaced: boolean
  /** Type of the objects, for the compiler alone; never set. */
  readonly [OBJECT]?: T
}

/** Describes a kind whose objects belong to namespaces. @param apiVersion - e.g. `apps/v1`, or `v1` for the core group. */
export function defineResource<T extends KubeObject>(
  apiVersion: string,
  plural: string,
  kind: string,
): Resource<T> {
  const [version = '', group = ''] = apiVersion.split('/').toReversed()
  return { group, version, plural, kind, namespaced: true }
}

/** Formats the API version of a resource: `group/version`, or the version alone for the core group. */
export function apiVersionOf(resource: Resource): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`
}

/** Builds the path of a resource's group and version, e.g. `/apis/apps/v1`. */
export function groupPath(resource: Resource): string {
  return resource.group === '' ? `/api/${resource.version}` : `/apis/${apiVersionOf(resource)}`
}

/** Builds the path of all objects of a kind, or of its objects in one namespace. */
export function collectionPath(resource: Resource, namespace?: string): string {
  if (namespace === undefined) return `${groupPath(resource)}/${resource.plural}`
  if (!resource.namespaced) {
    throw new Error(
      `bug: ${resource.plural} belong to no namespace, got namespace "${namespace}", want none`,
    )
  }
  return `${groupPath(resource)}/namespaces/${encodeURIComponent(namespace)}/${resource.plural}`
}

/** Builds the path of one object, or of its subresource. */
export function objectPath(resource: Resource, key: ObjectKey, subresource?: string): string {
  if (resource.namespaced && key.namespace === undefined) {
    throw new Error(`bug: ${resource.kind} "${key.name}" has no namespace, want one`)
  }
  const path = `${collectionPath(resource, key.namespace)}/${encodeURIComponent(key.name)}`
  return subresource === undefined ? path : `${path}/${subresource}`
}
