import type { KubeObject, ManagedFields, Stored } from '@tutti/kube'
import { FIELD_MANAGER, HANDOVER_MANAGER } from './children.ts'

const OURS: ReadonlySet<string> = new Set([FIELD_MANAGER, HANDOVER_MANAGER])

/** True for an entry of `metadata.managedFields` whose manager owns `spec.replicas`. */
export function ownsReplicas({ fieldsV1 }: ManagedFields): boolean {
  const spec = fieldsV1?.['f:spec']
  return typeof spec === 'object' && spec !== null && 'f:replicas' in spec
}

/**
 * Finds another owner of an object's replicas in `metadata.managedFields`.
 *
 * @returns the field manager, e.g. kube-controller-manager for an HPA; undefined if only the operator owns them, or nothing does.
 */
export function foreignWriterOf({ metadata }: Stored<KubeObject>): string | undefined {
  const { managedFields = [] } = metadata
  return managedFields.find((entry) => ownsReplicas(entry) && !OURS.has(entry.manager ?? ''))
    ?.manager
}
