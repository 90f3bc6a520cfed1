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

/** The name in which the operator owns fields. */
export const FIELD_MANAGER = 'tutti-operator'

/** Owns `spec.replicas` between the operator and the next scaler, so that they do not fall back to 1. */
export const HANDOVER_MANAGER = 'tutti-operator-handover'

/** Every child carries it; caches of children select by it. */
export const MANAGED_BY = { 'app.kubernetes.io/managed-by': FIELD_MANAGER } as const

/** The same, as the API server takes selectors. */
export const MANAGED_BY_SELECTOR = toSelector(MANAGED_BY)

/** True for what has the operator's label. */
export function isManaged({ metadata }: Pick<KubeObject, 'metadata'>): boolean {
  const labels = metadata.labels ?? {}
  return Object.entries(MANAGED_BY).every(([key, value]) => labels[key] === value)
}

/** Labels as the API server takes them for a selector. */
export function toSelector(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join()
}

/** The object that children belong to, as a cache gave it. */
export interface Owner {
  readonly resource: Resource
  readonly object: Stored<KubeObject>
}

/** A child as it is wanted: all fields that the operator wants to own, and no others. */
export interface DesiredChild {
  readonly resource: Resource
  readonly object: Desired<KubeObject>
  /** True if the object is to keep the replicas that it has, because somebody else scales it from now on. */
  readonly handsOverReplicas: boolean
  /** Kinds of children before it, all of which have to be there before it is written to. */
  readonly needs: readonly Resource[]
}

/** Makes a desired child of a kind's own type. Labels and owner reference of the operator are added when it is applied. */
export function desiredChild<T extends KubeObject>(
  resource: Resource<T>,
  object: NoInfer<Desired<T>>,
  o: Partial<Pick<DesiredChild, 'handsOverReplicas' | 'needs'>> = {},
): DesiredChild {
  return { resource, object, handsOverReplicas: false, needs: [], ...o }
}

/** Tells children apart: kind and key. */
export function childIdOf(resource: Resource, key: ObjectKey): string {
  return `${resource.group}/${resource.kind}/${toKeyString(key)}`
}

/** The whole object that is applied: with the owner as its controller, and the labels that all children have. */
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

/** The controller of an object, if it has one. */
export function controllerOf({
  metadata,
}: Pick<KubeObject, 'metadata'>): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true)
}
