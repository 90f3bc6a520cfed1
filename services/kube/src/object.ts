/** Fields that every object of Kubernetes has. Times are RFC 3339 strings. */
export interface KubeObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObjectMeta
}

/** Metadata of an object to write. Fields that the API server fills in are optional here, and required in `StoredMeta`. */
export interface ObjectMeta {
  readonly name: string
  /** Absent for kinds that belong to no namespace. */
  readonly namespace?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly ownerReferences?: readonly OwnerReference[]
  readonly finalizers?: readonly string[]
  readonly uid?: string
  /** Opaque: only equality means something. */
  readonly resourceVersion?: string
  /** Number of the spec's latest change; absent for kinds without a status subresource. */
  readonly generation?: number
  readonly creationTimestamp?: string
  /** Time of the deletion, while the object waits for its finalizers. */
  readonly deletionTimestamp?: string
  readonly deletionGracePeriodSeconds?: number
  readonly managedFields?: readonly ManagedFields[]
}

/** Fields that the API server gives every object. */
export interface StoredMeta {
  readonly uid: string
  readonly resourceVersion: string
  readonly creationTimestamp: string
}

/** An object from the API server, whole or reduced to the fields that a reflector keeps. */
export type Stored<T extends KubeObject> = T & { readonly metadata: StoredMeta }

export interface OwnerReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  /** True for the owner that is the object's controller, at most one. */
  readonly controller?: boolean
  readonly blockOwnerDeletion?: boolean
}

export interface ManagedFields {
  readonly manager: string
  readonly operation: 'Apply' | 'Update'
  readonly apiVersion: string
  readonly subresource?: string
  readonly time?: string
  readonly fieldsV1?: JsonObject
}

/** metav1.Condition. */
export interface Condition {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  /** The generation that the condition is about. */
  readonly observedGeneration?: number
  /** Time of the latest change of `status`. */
  readonly lastTransitionTime: string
  /** One CamelCase word. */
  readonly reason: string
  /** At most 32768 characters. */
  readonly message: string
}

/** A condition of one of Kubernetes' own kinds. */
export type StatusCondition = Pick<Condition, 'type'> &
  Partial<Omit<Condition, 'status'>> & { readonly status: string }

export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>
}

/** A number, or a text such as a name or a percentage. */
export type IntOrString = number | string

export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue }

export interface JsonObject {
  readonly [key: string]: JsonValue
}

/** T with every field optional, at every depth. Lists cannot have gaps. */
export type DeepPartial<T> = T extends readonly (infer Item)[]
  ? readonly DeepPartial<Item>[]
  : T extends object
    ? { readonly [K in keyof T]?: DeepPartial<T[K]> }
    : T

/**
 * Object that server-side apply sends: all fields that one manager wants, and no others. `apiVersion` and `kind` come from the
 * resource's descriptor.
 */
export type Desired<T extends KubeObject> = Omit<
  DeepPartial<T>,
  'apiVersion' | 'kind' | 'metadata'
> & { readonly metadata: ObjectMeta }

/** Namespace and name of an object. */
export interface ObjectKey {
  /** Absent for kinds that belong to no namespace. */
  readonly namespace?: string
  readonly name: string
}

/** Formats a key as `namespace/name`, or as the name alone without a namespace. */
export function toKeyString(key: ObjectKey): string {
  // Joined, since a template gives a text that keeps its parts until it is read, and these are kept for as long as the objects.
  return key.namespace === undefined ? key.name : [key.namespace, key.name].join('/')
}

/** Gives the key of an object, from its metadata. */
export function keyOf(object: { readonly metadata: ObjectKey }): ObjectKey {
  const { namespace, name } = object.metadata
  return namespace === undefined ? { name } : { namespace, name }
}
