import type { Event } from '../kinds/coordination.ts'
import type { StatusCondition } from '../object.ts'
import type { FailingPod, Failure, PodContainer } from './failing-pod.ts'
import { causeInLog } from './log-tail.ts'
import { claimFailure, probeFailure, warningOf } from './pod-events.ts'

/** Returns the reason to report for a failed container of this name in place of Kubernetes' own; undefined for Kubernetes' own. */
export type ContainerReasons = (container: string) => string | undefined

/** Reasons for which a container waits while nothing is wrong. With any other reason something is in its way. */
const COMING: ReadonlySet<string> = new Set(['ContainerCreating', 'PodInitializing'])
/** The reason of a container that has ended and starts again later. */
const RESTING = 'CrashLoopBackOff'

/**
 * Finds the present fault of a pod, at its deepest known cause; undefined if the pod has none. Pure.
 *
 * @param events - events about the pod and its claims. They tell of faults that no status shows (volumes, networks, probes).
 */
export function failureOfPod(
  pod: FailingPod,
  reasons: ContainerReasons = () => undefined,
  events: readonly Event[] = [],
): Failure | undefined {
  const ofStatus = (status: PodContainer) => ofContainer(pod, status, { reasons, events })
  return (
    unscheduled(pod, events) ??
    failed(pod) ??
    lost(pod) ??
    first(pod.status?.initContainerStatuses, ofStatus) ??
    first(pod.status?.containerStatuses, ofStatus) ??
    failedWithoutReason(pod) ??
    warningOf(pod, events)
  )
}

/** Formats a failure as a text for conditions, with its pod and container. */
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

/** Finds why a pod has no node: the scheduler says it, or events of the claim for which the pod waits. */
function unscheduled(pod: FailingPod, events: readonly Event[]): Failure | undefined {
  const told = ofScheduler(pod)
  const mayBeClaim = told === undefined || /PersistentVolumeClaim|VolumeBinding/.test(told.message)
  const waitsForClaim = pod.spec.nodeName === undefined && mayBeClaim
  return (waitsForClaim ? claimFailure(pod, events) : undefined) ?? told
}

function ofScheduler({ metadata, status }: FailingPod): Failure | undefined {
  const condition = status?.conditions?.find(({ type }) => type === 'PodScheduled')
  const { reason = '', message = '' } = condition ?? {}
  if (condition?.status !== 'False' || reason === '') return undefined
  return { reason, message, pod: metadata.name }
}

/** Finds the failure of a pod as a whole, such as an eviction. */
function failed({ status, metadata }: FailingPod): Failure | undefined {
  const { phase, reason = '', message = 'the pod has failed' } = status ?? {}
  return phase === 'Failed' && reason !== '' ? { reason, message, pod: metadata.name } : undefined
}

function failedWithoutReason({ status, metadata }: FailingPod): Failure | undefined {
  const { phase, message = 'the pod has failed' } = status ?? {}
  return phase === 'Failed' ? { reason: 'PodFailed', message, pod: metadata.name } : undefined
}

/**
 * Finds out that the node of a pod no longer answers: Kubernetes then takes the pod out of service by itself. All that makes a
 * pod ready, which the kubelet would have taken back first, is as it was.
 */
function lost({ metadata, status, spec }: FailingPod): Failure | undefined {
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

/** Tells whether a condition is older than another by whole seconds. Two conditions of the same second count as simultaneous. */
function isEarlier(one: StatusCondition, other: StatusCondition): boolean {
  return Date.parse(one.lastTransitionTime ?? '') < Date.parse(other.lastTransitionTime ?? '')
}

interface Surrounding {
  readonly reasons: ContainerReasons
  readonly events: readonly Event[]
}

/** Finds the failure of a container that cannot start, or that ended and is not well again. */
function ofContainer(pod: FailingPod, status: PodContainer, o: Surrounding): Failure | undefined {
  const place = { pod: pod.metadata.name, container: status.name }
  const { reason, message = '' } = status.state?.waiting ?? {}
  const ended = findEnd(status)
  const isOver = reason === RESTING && ended !== undefined
  if (reason !== undefined && !isOver && !COMING.has(reason)) return { ...place, reason, message }
  if (ended === undefined || (ended.exitCode === 0 && !isOver)) return undefined
  return ofEnd(pod, status, { ...o, ended })
}

function ofEnd(
  pod: FailingPod,
  { name, state }: PodContainer,
  { ended, reasons, events }: Surrounding & { readonly ended: Ended },
): Failure {
  const { exitCode } = ended
  const ofProbe = isKilled(ended) ? probeFailure(pod, ended, { events, name }) : undefined
  if (ofProbe !== undefined) return { ...ofProbe, exitCode }
  const ownReason = reasons(name) ?? (state?.waiting?.reason === RESTING ? RESTING : undefined)
  return {
    reason: reasonOf(ended.reason, ownReason),
    // The text of the back-off counts up; what the process said does not.
    message: toEndText(name, ended),
    pod: pod.metadata.name,
    container: name,
    exitCode,
  }
}

type Ended = NonNullable<NonNullable<PodContainer['state']>['terminated']>

/** Kubernetes leaves the message empty where the process said nothing. */
function toEndText(name: string, { message = '', exitCode }: Ended): string {
  return message === ''
    ? `container "${name}" ended with exit code ${exitCode}`
    : causeInLog(message)
}

function findEnd({ ready, state, lastState }: PodContainer): Ended | undefined {
  return state?.terminated ?? (ready ? undefined : lastState?.terminated)
}

/**
 * Tells whether a container ended by SIGKILL or SIGTERM, or exited by itself after the signal. A kubelet ends a container
 * that way if its probe fails.
 */
function isKilled({ exitCode, reason }: Ended): boolean {
  return reason !== 'OOMKilled' && (exitCode === 137 || exitCode === 143 || exitCode === 0)
}

/** Chooses the reason of a failure. That memory was short says more than which container ended. */
function reasonOf(ended = 'Error', own?: string): string {
  return ended === 'OOMKilled' ? ended : (own ?? ended)
}
