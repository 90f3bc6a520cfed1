import type { ContainerStatus, PodSpec, PodStatus } from '../kinds/pod.ts'
import type { StatusCondition } from '../object.ts'
import { causeInLog } from './log-tail.ts'

/** What went wrong. */
export interface Failure {
  /** One CamelCase word. */
  readonly reason: string
  readonly message: string
  readonly pod?: string | undefined
  readonly container?: string | undefined
  readonly exitCode?: number | undefined
}

/** What is read of a container. */
type PodContainer = Pick<ContainerStatus, 'name' | 'ready' | 'state' | 'lastState'>

/** What is read of a pod. */
interface PodState {
  readonly metadata: { readonly name: string }
  readonly spec: Pick<PodSpec, 'nodeName' | 'readinessGates'>
  readonly status?: Pick<PodStatus, 'phase' | 'reason' | 'message' | 'conditions'> & {
    readonly containerStatuses?: readonly PodContainer[]
    readonly initContainerStatuses?: readonly PodContainer[]
  }
}

/** Reasons of containers whose failures have one of their own, by the containers' names. */
export type ContainerReasons = Readonly<Record<string, string>>

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
export function failureOfPod(pod: PodState, reasons: ContainerReasons = {}): Failure | undefined {
  const ofStatus = (status: PodContainer) => ofContainer(pod, status, reasons)
  return (
    unscheduled(pod) ??
    failed(pod) ??
    lost(pod) ??
    first(pod.status?.initContainerStatuses, ofStatus) ??
    first(pod.status?.containerStatuses, ofStatus)
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
function ofContainer(
  pod: PodState,
  status: PodContainer,
  reasons: ContainerReasons,
): Failure | undefined {
  const place = { pod: pod.metadata.name, container: status.name }
  const { reason, message = '' } = status.state?.waiting ?? {}
  if (reason !== undefined && WAITING.has(reason)) {
    return { ...place, reason, message }
  }
  const ended = findEnd(status)
  if (ended === undefined || ended.exitCode === 0) return undefined
  const { exitCode } = ended
  const ownReason = reasons[status.name] ?? (reason === 'CrashLoopBackOff' ? reason : undefined)
  return {
    ...place,
    reason: reasonOf(ended.reason, ownReason),
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

/** That memory was short says more than which container ended. */
function reasonOf(ended = 'Error', own?: string): string {
  return ended === 'OOMKilled' ? ended : (own ?? ended)
}
