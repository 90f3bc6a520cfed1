import type { KubeObject } from '@tutti/kube'
import type { ChildId } from '../../runtime/apply.ts'
import type { EventInput } from '../../runtime/events.ts'

/** Somebody else changed a child, and it is as it was again. */
export function childRepaired(regarding: KubeObject, { resource, key }: ChildId): EventInput {
  const note = `${resource.kind} "${key.name}" was changed by another client; the operator has restored it`
  return { regarding, type: 'Warning', reason: 'ChildRepaired', action: 'Apply', note }
}

/** Another number of pods than before is wanted. */
export function replicasChanged(regarding: KubeObject, from: number, to: number): EventInput {
  const note = `replicas from ${from} to ${to}`
  return { regarding, type: 'Normal', reason: 'Scaled', action: 'Scale', note }
}

/** The conditions that say that somebody must act, and how. */
export const BAD_OF_MODEL = [
  ['Accepted', 'False'],
  ['SchemaVerified', 'False'],
  ['Degraded', 'True'],
] as const
