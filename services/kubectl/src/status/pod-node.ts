import { fetchReasonOf, isToldByProcess, type ModelStart, startText } from '@tutti/api'
import {
  type Event,
  failureOfPod,
  isProbeThatEnds,
  type Pod,
  type PodStatus,
  type Stored,
} from '@tutti/kube'
import { isPodReady } from './read-state.ts'
import type { Cause, StatusNode } from './tree.ts'

/**
 * Builds the node of a pod. The cause comes from the pod's status, else from its events, as in the operator's conditions. Pure.
 *
 * @param start - what the status of its Model says of a start; it may be that of another pod.
 */
export function toPodNode(
  pod: Stored<Pod>,
  { events, start, nowMs = Date.now() }: PodKnowledge,
): StatusNode {
  const node = { kind: 'Pod', name: pod.metadata.name, children: [] } as const
  const detail = detailOf(pod)
  if (isLeaving(pod)) {
    const cause = { reason: 'Terminating', message: 'the pod is being deleted' }
    return { ...node, state: 'NotReady', ...detail, cause }
  }
  if (isPodReady(pod)) return { ...node, state: 'Ready', ...detail }
  const own = start?.pod === pod.metadata.name ? start : undefined
  return {
    ...node,
    state: 'NotReady',
    ...detail,
    cause: causeOf(pod, { events, start: own, nowMs }),
  }
}

/** The events and the start that tell more of pods than their own status. */
interface PodKnowledge {
  readonly events: readonly Event[]
  readonly start?: ModelStart | undefined
  readonly nowMs?: number
}

export function isLeaving({ metadata }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined
}

function detailOf({ status }: Pod): Pick<StatusNode, 'detail'> {
  const restarts = (status?.containerStatuses ?? []).reduce((sum, one) => sum + one.restartCount, 0)
  return restarts === 0 ? {} : { detail: `${restarts} restart${restarts === 1 ? '' : 's'}` }
}

function causeOf(pod: Stored<Pod>, { events, start, nowMs }: Required<PodKnowledge>): Cause {
  const failure = failureOfPod(pod, fetchReasonOf, tellingEvents(pod, events, start))
  if (failure !== undefined) {
    const { reason, message, container, exitCode } = failure
    const named = `container "${container}"`
    const place = container === undefined || message.includes(named) ? '' : `${named}: `
    const code =
      exitCode === undefined || message.includes('exit code') ? '' : ` (exit code ${exitCode})`
    return { reason, message: `${place}${message}${code}` }
  }
  const own = waitOf(pod)
  return start === undefined ? own : { ...own, message: `it ${startText(start, nowMs)}` }
}

/** Finds the events that tell of a failure: the startup probe of a process that loads its model fails until that is done. */
function tellingEvents(
  { status }: Pod,
  events: readonly Event[],
  start: ModelStart | undefined,
): readonly Event[] {
  if (start === undefined || !isToldByProcess(start)) return events
  const { restartCount = 0 } = status?.containerStatuses?.find(({ name }) => name === 'main') ?? {}
  return events.filter((event) => isProbeThatEnds(event, { restartCount }))
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
