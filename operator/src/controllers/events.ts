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
  /** Types of conditions with the status that says that somebody must act. */
  readonly bad: readonly (readonly [type: string, status: Condition['status']])[]
  /** Text of a condition, which is told again when the text changes; undefined if it is not worth telling. */
  readonly textOf: (condition: Condition) => string | undefined
}

/** Routers use something else from now on. */
export function revisionAccepted(regarding: KubeObject, name: string): EventInput {
  const note = `accepted as ControllerRevision "${name}"`
  return { regarding, type: 'Normal', reason: 'RevisionAccepted', action: 'Accept', note }
}

/** Finds what is worth telling of a change of a status: readiness, and conditions that went bad. */
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

/** Requests are answered from now on. */
function becameReady(regarding: KubeObject): EventInput {
  const note = 'requests are answered'
  return { regarding, type: 'Normal', reason: 'Ready', action: 'Serve', note }
}
