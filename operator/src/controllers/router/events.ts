import { type Condition, ROUTER_NAME, type RouterStatus } from '@tutti/api'
import type { KubeObject } from '@tutti/kube'
import type { EventInput } from '../../runtime/events.ts'
import { eventsOfChange } from '../events.ts'

/** Builds the event for a Router that the API server does not let the operator create. */
export function routerRefused(regarding: KubeObject, message: string): EventInput {
  const note = `Router "${ROUTER_NAME}": ${message}`
  return { regarding, type: 'Warning', reason: 'RouterRefused', action: 'Create', note }
}

/** Builds the events for a change of a Router's status: when it becomes ready, and when Degraded becomes True. */
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
