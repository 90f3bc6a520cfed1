import type { Condition } from '@tutti/api'
import type { KubeObject } from '@tutti/kube'
import { findCondition } from '../runtime/conditions.ts'
import { distinct, type EventInput } from '../runtime/events.ts'

interface Conditioned {
  readonly conditions?: readonly Condition[] | undefined
}

export interface ChangeOptions {
  readonly before: Conditioned | undefined
  readonly after: Conditioned
  /** Types of conditions, each with the status that needs a person. */
  readonly bad: readonly (readonly [type: string, status: Condition['status']])[]
  /** Function that returns the text of a condition. A new text makes a new event; undefined makes none. */
  readonly textOf: (condition: Condition) => string | undefined
}

/** Builds the event for a ControllerRevision that was accepted, which routers use from now on. */
export function revisionAccepted(regarding: KubeObject, name: string): EventInput {
  const note = `accepted as ControllerRevision "${name}"`
  return { regarding, type: 'Normal', reason: 'RevisionAccepted', action: 'Accept', note }
}

/** Builds the events for a change of a status: one when it becomes ready, and one for each condition that went bad. */
export function eventsOfChange(
  regarding: KubeObject,
  { before, after, bad, textOf }: ChangeOptions,
): readonly EventInput[] {
  const told = bad.flatMap(([type, status]): EventInput[] => {
    const now = findCondition(after.conditions, type)
    const then = findCondition(before?.conditions, type)
    const text = now?.status === status ? textOf(now) : undefined
    if (now === undefined || text === undefined) return []
    if (then?.status === status && textOf(then) === text) return []
    return [{ regarding, type: 'Warning', reason: now.reason, action: 'Check', note: now.message }]
  })
  return isReady(after) && !isReady(before)
    ? [becameReady(regarding), ...distinct(told)]
    : distinct(told)
}

function isReady(status: Conditioned | undefined): boolean {
  return findCondition(status?.conditions, 'Ready')?.status === 'True'
}

/** Builds the event of an object whose requests are answered from now on. */
function becameReady(regarding: KubeObject): EventInput {
  const note = 'requests are answered'
  return { regarding, type: 'Normal', reason: 'Ready', action: 'Serve', note }
}
