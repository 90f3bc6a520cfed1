import type { ModelStatus } from '@tutti/ensemble'
import type { Stored } from '@tutti/kube'
import type { ModelObject } from '../../api/kinds.ts'
import type { ChildId } from '../../runtime/apply.ts'
import { findCondition } from '../../runtime/conditions.ts'
import { distinct, type EventInput } from '../../runtime/events.ts'

type Model = Stored<ModelObject>

/** Requests are answered from now on. */
export function becameReady(regarding: Model): EventInput {
  const note = 'requests are answered'
  return { regarding, type: 'Normal', reason: 'Ready', action: 'Serve', note }
}

/** A condition went bad; `reason` is the condition's. */
export function wentWrong(regarding: Model, reason: string, note: string): EventInput {
  return { regarding, type: 'Warning', reason, action: 'Judge', note }
}

/** What pods serve may be used by routers from now on. */
export function revisionAccepted(regarding: Model, name: string): EventInput {
  const note = `accepted as ControllerRevision "${name}"`
  return { regarding, type: 'Normal', reason: 'RevisionAccepted', action: 'Accept', note }
}

/** Somebody else changed a child, and it is as it was again. */
export function childRepaired(regarding: Model, { resource, key }: ChildId): EventInput {
  const note = `${resource.kind} "${key.name}" was changed by somebody else; it is as before again`
  return { regarding, type: 'Warning', reason: 'ChildRepaired', action: 'Apply', note }
}

/** Another number of pods than before is wanted. */
export function replicasChanged(regarding: Model, from: number, to: number): EventInput {
  const note = `replicas from ${from} to ${to}`
  return { regarding, type: 'Normal', reason: 'Scaled', action: 'Scale', note }
}

/** What a change of the status is worth telling. */
export function eventsOfChange(
  regarding: Model,
  before: ModelStatus,
  after: ModelStatus,
): readonly EventInput[] {
  const bad = BAD.flatMap(([type, status]) => {
    const now = findCondition(after.conditions, type)
    const then = findCondition(before.conditions, type)
    const isNew = now?.status === status && (then?.status !== status || then.reason !== now.reason)
    return isNew ? [wentWrong(regarding, now.reason, now.message)] : []
  })
  const isReady = findCondition(after.conditions, 'Ready')?.status === 'True'
  const wasReady = findCondition(before.conditions, 'Ready')?.status === 'True'
  const told = distinct(bad)
  return isReady && !wasReady ? [becameReady(regarding), ...told] : told
}

/** The conditions that say that somebody must act, and how. */
const BAD = [
  ['Accepted', 'False'],
  ['SchemaVerified', 'False'],
  ['Degraded', 'True'],
] as const
