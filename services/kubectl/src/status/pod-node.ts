import { fetchReasonOf } from '@tutti/api'
import { type Event, failureOfPod, type Pod, type PodStatus, type Stored } from '@tutti/kube'
import { isPodReady } from './read-state.ts'
import type { Cause, StatusNode } from './tree.ts'

/**
 * Builds the node of a pod. The cause comes from the pod's status, else from its events, as in the operator's conditions. Pure.
 *
 * @param wait - text of what the pod waits for, from the status of its Model; absent if that does not speak of this pod.
 */
export function toPodNode(pod: Stored<Pod>, events: readonly Event[], wait?: string): StatusNode {
  const node = { kind: 'Pod', name: pod.metadata.name, children: [] } as const
  const detail = detailOf(pod)
  if (isLeaving(pod)) {
    const cause = { reason: 'Terminating', message: 'the pod is being deleted' }
    return { ...node, state: 'NotReady', ...detail, cause }
  }
  if (isPodReady(pod)) return { ...node, state: 'Ready', ...detail }
  return { ...node, state: 'NotReady', ...detail, cause: causeOf(pod, events, wait) }
}

export function isLeaving({ metadata }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined
}

function detailOf({ status }: Pod): Pick<StatusNode, 'detail'> {
  const restarts = (status?.containerStatuses ?? []).reduce((sum, one) => sum + one.restartCount, 0)
  return restarts === 0 ? {} : { detail: `${restarts} restart${restarts === 1 ? '' : 's'}` }
}

function causeOf(pod: Stored<Pod>, events: readonly Event[], wait: string | undefined): Cause {
  const failure = failureOfPod(pod, fetchReasonOf, events)
  if (failure !== undefined) {
    const { reason, message, container, exitCode } = failure
    const named = `container "${container}"`
    const place = container === undefined || message.includes(named) ? '' : `${named}: `
    const code =
      exitCode === undefined || message.includes('exit code') ? '' : ` (exit code ${exitCode})`
    return { reason, message: `${place}${message}${code}` }
  }
  const own = waitOf(pod)
  return { ...own, message: wait ?? own.message }
}

/** Finds what a pod waits for, where nothing has gone wrong. */
function waitOf({ spec, status = {} }: Pod): Cause {
  if (spec.nodeName === undefined) return { reason: 'Pending', message: 'the pod waits for a node' }
  return (
    waitOfInit(status) ??
    waitOfContainer(status) ??
    waitOfGate(status) ?? { reason: status.phase ?? 'Pending', message: 'the pod is not ready yet' }
  )
}

function waitOfInit({ initContainerStatuses = [] }: PodStatus): Cause | undefined {
  const running = initContainerStatuses.find(({ state }) => state?.running !== undefined)
  if (running === undefined) return undefined
  return { reason: 'Initializing', message: `init container "${running.name}" is running` }
}

function waitOfContainer({ containerStatuses = [] }: PodStatus): Cause | undefined {
  const waiting = containerStatuses.find(({ ready }) => !ready)
  if (waiting === undefined) return undefined
  const { name, state, started } = waiting
  const place = `container "${name}"`
  if (state?.running === undefined) {
    const reason = state?.waiting?.reason ?? 'ContainerNotReady'
    return { reason, message: `${place} has not started yet` }
  }
  if (started === false) return { reason: 'Starting', message: `${place} is starting` }
  return { reason: 'ContainerNotReady', message: `${place} runs and is not ready yet` }
}

/** Gates have names of the form DOMAIN/NAME. */
function waitOfGate({ conditions = [] }: PodStatus): Cause | undefined {
  const closed = conditions.find(({ status, type }) => status !== 'True' && type.includes('/'))
  if (closed === undefined) return undefined
  const message = closed.message || `readiness gate ${closed.type} is not open yet`
  return { reason: closed.reason || 'GateClosed', message }
}
