import type { KubeObject } from '@tutti/kube'
import type { ChildId } from '../../runtime/apply.ts'
import type { EventInput } from '../../runtime/events.ts'

/** Builds the event for a child that another client changed and the operator has restored. */
export function childRepaired(regarding: KubeObject, { resource, key }: ChildId): EventInput {
  const note = `${resource.kind} "${key.name}" was changed by another client; the operator has restored it`
  return { regarding, type: 'Warning', reason: 'ChildRepaired', action: 'Apply', note }
}

/** Builds the event for a change of the wanted replicas. */
export function replicasChanged(regarding: KubeObject, from: number, to: number): EventInput {
  const note = `replicas from ${from} to ${to}`
  return { regarding, type: 'Normal', reason: 'Scaled', action: 'Scale', note }
}

/** The conditions of a Model with the status that needs a person; see ChangeOptions. */
export const BAD_OF_MODEL = [
  ['Accepted', 'False'],
  ['SchemaVerified', 'False'],
  ['Degraded', 'True'],
] as const
