import { type Condition, ROUTER_NAME, type RouterStatus } from '@tutti/api'
import type { KubeObject } from '@tutti/kube'
import type { EventInput } from '../../runtime/events.ts'
import { eventsOfChange } from '../events.ts'

/** The API server does not let the operator make the Router. */
export function routerRefused(regarding: KubeObject, message: string): EventInput {
  const note = `Router "${ROUTER_NAME}": ${message}`
  return { regarding, type: 'Warning', reason: 'RouterRefused', action: 'Create', note }
}

/** Finds what is worth telling of a change of the status. */
export function eventsOfRouter(
  regarding: KubeObject,
  before: RouterStatus | undefined,
  after: RouterStatus,
): readonly EventInput[] {
  return eventsOfChange(regarding, { before, after, bad: [['Degraded', 'True']], textOf })
}

function textOf({ reason, message }: Condition): string {
  return `${reason} ${message}`
}
