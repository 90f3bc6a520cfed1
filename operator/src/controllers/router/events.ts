import { type Condition, ROUTER_NAME, type RouterStatus } from '@tutti/ensemble'
import type { KubeObject } from '@tutti/kube'
import type { EventInput } from '../../runtime/events.ts'
import { eventsOfChange } from '../events.ts'

/** The settings of the earlier release are in the spec from now on. */
export function settingsTakenOver(regarding: KubeObject, configMap: string): EventInput {
  const note = `the settings of ConfigMap "${configMap}" are in the spec now, and the ConfigMap has no effect any more`
  return { regarding, type: 'Normal', reason: 'SettingsTakenOver', action: 'TakeOver', note }
}

/** The API server does not let the operator make the Router. */
export function routerRefused(regarding: KubeObject, message: string): EventInput {
  const note = `Router "${ROUTER_NAME}": ${message}`
  return { regarding, type: 'Warning', reason: 'RouterRefused', action: 'Create', note }
}

/** What a change of the status is worth telling. */
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
