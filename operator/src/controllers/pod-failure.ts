import type { LastFailure } from '@tutti/ensemble'
import type { StatusCondition } from '@tutti/kube'
import type { PodContainer, PodState } from '../pods/pod-state.ts'
import { FETCH, VERIFY } from '../resources/model-artifacts.ts'
import { causeInLog } from './log-tail.ts'

/** What went wrong, without the time when it was seen. */
export type Failure = Omit<LastFailure, 'time'>

/** What is in the way of a container, of those things that Kubernetes calls waiting. */
const WAITING: ReadonlySet<string> = new Set([
  'ImagePullBackOff',
  'ErrImagePull',
  'InvalidImageName',
  'ErrImageNeverPull',
  'CreateContainerConfigError',
  'CreateContainerError',
  'RunContainerError',
])

/** What Kubernetes says is wrong with a pod now; undefined if nothing is. Pure. */
export function failureOfPod(pod: PodState): Failure | undefined {
  return (
    unscheduled(pod) ??
    failed(pod) ??
    lost(pod) ??
    first(pod.status?.initContainerStatuses, (status) => ofContainer(pod, status)) ??
    first(pod.status?.containerStatuses, (status) => ofContainer(pod, status))
  )
}

/** A failure in one line, for conditions. */
export function toFailureText({ pod, container, message }: Failure): string {
  const place = [pod && `pod "${pod}"`, container && `container "${container}"`].filter(Boolean)
  return place.length === 0 ? message : `${place.join(', ')}: ${message}`
}

function first<T>(
  items: readonly T[] | undefined,
  find: (item: T) => Failure | undefined,
): Failure | undefined {
  for (const item of items ?? []) {
    const found = find(item)
    if (found !== undefined) return found
  }
  return undefined
}

function unscheduled(pod: PodState): Failure | undefined {
  const condition = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled')
  if (condition?.status !== 'False' || condition.reason !== 'Unschedulable') return undefined
  return { reason: 'Unschedulable', message: condition.message ?? '', pod: pod.metadata.name }
}

/** Evicted, say. */
function failed(pod: PodState): Failure | undefined {
  const { phase, reason = 'PodFailed', message = 'the pod has failed' } = pod.status ?? {}
  return phase === 'Failed' ? { reason, message, pod: pod.metadata.name } : undefined
}

/**
 * Its node does not answer any more: Kubernetes then takes the pod out of service by itself. All that makes a pod ready, which
 * the kubelet would have taken back first, is as it was.
 */
function lost({ metadata, status, spec }: PodState): Failure | undefined {
  const { phase, conditions = [] } = status ?? {}
  const ready = conditions.find(({ type }) => type === 'Ready')
  const gates = (spec.readinessGates ?? []).map(({ conditionType }) => conditionType)
  const parts = ['ContainersReady', ...gates].map((wanted) =>
    conditions.find(({ type }) => type === wanted),
  )
  const isTaken =
    ready?.status === 'False' &&
    parts.every((part) => part?.status === 'True' && isEarlier(part, ready))
  if (phase !== 'Unknown' && !isTaken) return undefined
  const message = `node "${spec.nodeName}" does not answer`
  return { reason: 'NodeNotReady', message, pod: metadata.name }
}

/** In whole seconds: what happened in one second counts as together. */
function isEarlier(one: StatusCondition, other: StatusCondition): boolean {
  return Date.parse(one.lastTransitionTime ?? '') < Date.parse(other.lastTransitionTime ?? '')
}

/** A container that cannot start, or that ended and is not well again. */
function ofContainer(pod: PodState, status: PodContainer): Failure | undefined {
  const place = { pod: pod.metadata.name, container: status.name }
  const { reason, message = '' } = status.state?.waiting ?? {}
  if (reason !== undefined && WAITING.has(reason)) {
    return { ...place, reason, message }
  }
  const ended = findEnd(status)
  if (ended === undefined || ended.exitCode === 0) return undefined
  const { exitCode } = ended
  return {
    ...place,
    reason: reasonOf(status, ended.reason, reason === 'CrashLoopBackOff'),
    // The text of the back-off counts up; what the process said does not.
    message:
      (ended.message && causeInLog(ended.message)) ??
      `container "${status.name}" ended with exit code ${exitCode}`,
    exitCode,
  }
}

function findEnd({ ready, state, lastState }: PodContainer) {
  return state?.terminated ?? (ready ? undefined : lastState?.terminated)
}

function reasonOf(status: PodContainer, reason: string | undefined, isOver: boolean): string {
  if (reason === 'OOMKilled') return reason
  if (status.name === FETCH || status.name === VERIFY) return 'FetchFailed'
  return isOver ? 'CrashLoopBackOff' : (reason ?? 'Error')
}
