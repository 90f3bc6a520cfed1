import { assert } from '@tutti/errors'
import {
  apiVersionOf,
  type Desired,
  type KubeObject,
  type ObjectKey,
  type OwnerReference,
  type Resource,
  type Stored,
  toKeyString,
} from '@tutti/kube'

/** The field manager under which the operator applies objects. */
export const FIELD_MANAGER = 'tutti-operator'

/** The field manager that owns `spec.replicas` until the next scaler takes the field, so that it does not fall back to 1. */
export const HANDOVER_MANAGER = 'tutti-operator-handover'

/** The label of every child. Caches of children select by this label. */
export const MANAGED_BY = { 'app.kubernetes.io/managed-by': FIELD_MANAGER } as const

/** The label selector for `MANAGED_BY`. */
export const MANAGED_BY_SELECTOR = toSelector(MANAGED_BY)

/** True if an object has the label `MANAGED_BY`. */
export function isManaged({ metadata }: Pick<KubeObject, 'metadata'>): boolean {
  const labels = metadata.labels ?? {}
  return Object.entries(MANAGED_BY).every(([key, value]) => labels[key] === value)
}

/** Writes labels as a label selector of the API server: `key=value` pairs with commas between them. */
export function toSelector(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join()
}

/** The object that children belong to, as it is in the cache. */
export interface Owner {
  readonly resource: Resource
  readonly object: Stored<KubeObject>
}

/** A desired child. Its object has all fields that the operator owns, and no others. */
export interface DesiredChild {
  readonly resource: Resource
  readonly object: Desired<KubeObject>
  /** True if another scaler takes over, so that the object must keep its present replicas. */
  readonly handsOverReplicas: boolean
  /** Kinds that this child needs: all children of these kinds that come before it must be in place first. */
  readonly needs: readonly Resource[]
}

/** Makes a desired child. The applier adds the operator's labels and the owner reference later. */
export function desiredChild<T extends KubeObject>(
  resource: Resource<T>,
  object: NoInfer<Desired<T>>,
  o: Partial<Pick<DesiredChild, 'handsOverReplicas' | 'needs'>> = {},
): DesiredChild {
  return { resource, object, handsOverReplicas: false, needs: [], ...o }
}

/** Returns an id of a child that is unique over all kinds: `group/kind/key`. */
export function childIdOf(resource: Resource, key: ObjectKey): string {
  return `${resource.group}/${resource.kind}/${toKeyString(key)}`
}

/** Returns the object to apply: the child's, with the owner as controller and the labels that all children have. */
export function toOwned(owner: Owner, child: DesiredChild): Desired<KubeObject> {
  const { annotations = {}, ...metadata } = child.object.metadata
  const { namespace } = owner.object.metadata
  assert(
    namespace === undefined || namespace === metadata.namespace,
    `${child.resource.kind} "${metadata.name}" is in namespace "${metadata.namespace}", its owner in "${namespace}"`,
  )
  return {
    ...child.object,
    metadata: {
      ...metadata,
      // The server leaves out what is empty.
      ...(Object.keys(annotations).length > 0 && { annotations }),
      labels: {
        'app.kubernetes.io/instance': owner.object.metadata.name,
        ...metadata.labels,
        ...MANAGED_BY,
      },
      ownerReferences: [toOwnerReference(owner)],
    },
  }
}

export function toOwnerReference({ resource, object }: Owner): OwnerReference {
  return {
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    name: object.metadata.name,
    uid: object.metadata.uid,
    controller: true,
    blockOwnerDeletion: true,
  }
}

/** Returns the owner reference of an object's controller, if there is one. */
export function controllerOf({
  metadata,
}: Pick<KubeObject, 'metadata'>): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true)
}
