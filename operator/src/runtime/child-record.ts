import { BUILTINS_LABEL } from '@tutti/api'
import { type Desired, type KubeObject, keyOf, type OwnerReference, type Stored } from '@tutti/kube'
import { APPLIED_ANNOTATION, holds, withoutMark } from './applied-mark.ts'
import { digestOf } from './canonical.ts'
import { controllerOf } from './children.ts'
import { intern } from './intern.ts'
import { ownedFieldsOf } from './owned-fields.ts'

/**
 * The parts of a child that caches keep: its identity, its controller, and digests that tell whether the last apply still stands.
 * All else, managedFields included, is dropped on arrival, because it takes nine tenths of the memory.
 */
export interface ChildRecord extends KubeObject {
  readonly metadata: ChildMeta
  /** Digest of the fields that the operator owns, without the mark. It equals the applied object's if nothing has changed. */
  readonly owned: string
  /** Digest from the object's `APPLIED_ANNOTATION`, set by the last apply. */
  readonly mark?: string
  /** Fields that the operator owns, kept only if `owned` is not `mark`: the server added to them, or somebody changed one. */
  readonly fields?: object
}

/** Metadata with the labels that tell whose an object is, and the controller as owner. Annotations and owners of fields are not kept. */
type ChildMeta = Omit<Stored<KubeObject>['metadata'], 'annotations' | 'managedFields'>

/** Labels that are kept. */
const LABELS = [
  'app.kubernetes.io/managed-by',
  'app.kubernetes.io/component',
  'app.kubernetes.io/instance',
  BUILTINS_LABEL,
]

/** Cuts an object to its record. @param more - further parts of this kind that reconciles read. */
export function toChildRecord<M extends object>(
  object: Stored<KubeObject>,
  more: M,
): Stored<ChildRecord> & M {
  const { annotations } = object.metadata
  const fields = withoutMark(ownedFieldsOf(object) ?? { metadata: keyOf(object) })
  const mark = annotations?.[APPLIED_ANNOTATION]
  const owned = digestOf(fields)
  return {
    apiVersion: intern(object.apiVersion),
    kind: intern(object.kind),
    metadata: toMeta(object),
    owned,
    // The same text once.
    ...(mark === owned ? { mark: owned } : { fields, ...(mark !== undefined && { mark }) }),
    ...more,
  }
}

/** True if the desired object is the one that was applied last, and all its fields still have the applied values. Pure. */
export function isAsApplied(
  { owned, mark, fields }: ChildRecord,
  { desired, digest }: { readonly desired: Desired<KubeObject>; readonly digest: string },
): boolean {
  if (owned === digest) return true
  return mark === digest && fields !== undefined && holds(fields, desired)
}

function toMeta({ metadata }: Stored<KubeObject>): ChildMeta {
  const { name, namespace, uid, resourceVersion, generation, creationTimestamp } = metadata
  const { deletionTimestamp, finalizers = [], labels = {} } = metadata
  const controller = controllerOf({ metadata })
  return {
    name: intern(name),
    uid,
    resourceVersion,
    creationTimestamp: intern(creationTimestamp),
    labels: Object.fromEntries(
      LABELS.flatMap((label) => {
        const value = labels[label]
        return value === undefined ? [] : [[label, intern(value)]]
      }),
    ),
    ownerReferences: controller === undefined ? [] : [toReference(controller)],
    ...(namespace !== undefined && { namespace: intern(namespace) }),
    ...(generation !== undefined && { generation }),
    ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    ...(finalizers.length > 0 && { finalizers }),
  }
}

function toReference({ apiVersion, kind, name, uid }: OwnerReference): OwnerReference {
  return {
    apiVersion: intern(apiVersion),
    kind: intern(kind),
    name: intern(name),
    uid: intern(uid),
    controller: true,
  }
}
