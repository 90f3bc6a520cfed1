import type { Event } from '../kinds/coordination.ts'
import type { ContainerStatus } from '../kinds/pod.ts'
import type { FailingPod, Failure } from './failing-pod.ts'

/*
 * This file finds what kubelets, schedulers and controllers of volumes say in events alone. Their newest event tells how far they
 * are: what they warned of before is over once they go on.
 */

/** Reasons of events about which the status of the pod has more words. */
const TOLD_BY_STATUS: ReadonlySet<string> = new Set(['BackOff', 'FailedScheduling', 'Evicted'])

/**
 * Returns the time at which an event was last seen. Events of kubelets have the time in a field of an older version of the kind.
 */
function timeOfEvent(event: Event & { readonly deprecatedLastTimestamp?: string | null }): string {
  const { series, deprecatedLastTimestamp, eventTime, metadata } = event
  // A field without a value may be null.
  const times = [series?.lastObservedTime, deprecatedLastTimestamp, eventTime]
  return times.find((time) => typeof time === 'string') ?? metadata.creationTimestamp ?? ''
}

/** Finds the latest warning about a pod; undefined if a normal event or the start of a container came later. Pure. */
export function warningOf(pod: FailingPod, events: readonly Event[]): Failure | undefined {
  const own = eventsOf(pod, events).filter(({ reason }) => !TOLD_BY_STATUS.has(reason))
  const [latest] = own.toSorted(newestFirst)
  if (latest?.type !== 'Warning') return undefined
  const startedAt = startOf(pod)
  if (startedAt !== undefined && msOf(latest) < startedAt) return undefined
  return toFailure(pod, latest)
}

/** Finds the failed liveness or startup probe for which a container was killed. Pure. */
export function probeFailure(
  pod: FailingPod,
  { finishedAt = '' }: { readonly finishedAt?: string | undefined },
  { events, name }: { readonly events: readonly Event[]; readonly name: string },
): Failure | undefined {
  const endedMs = Date.parse(finishedAt)
  const [latest] = eventsOf(pod, events)
    .filter((event) => event.reason === 'Unhealthy' && containerOf(event) === name)
    .filter(({ note = '' }) => /^(Liveness|Startup) probe/.test(note))
    .filter((event) => Math.abs(msOf(event) - endedMs) < NEAR_MS)
    .toSorted(newestFirst)
  return latest && toFailure(pod, latest)
}

/** Most time between the last failure of a probe and the end of its container: the grace period of the pod lies between. */
const NEAR_MS = 180_000

/**
 * Tells whether an event is of a probe that ends its container. The startup probe also fails while a container begins, which ends
 * nothing yet.
 */
export function isProbeThatEnds(
  { reason, note = '' }: Event,
  { restartCount }: Pick<ContainerStatus, 'restartCount'>,
): boolean {
  if (reason !== 'Unhealthy') return false
  if (note.startsWith('Startup probe')) return restartCount > 0
  return !note.startsWith('Readiness probe')
}

/** Finds the latest event that says why a claim of the pod has no volume. Pure. */
export function claimFailure(pod: FailingPod, events: readonly Event[]): Failure | undefined {
  const claims = claimsOf(pod)
  const [latest] = events
    .filter(({ regarding }) => regarding?.kind === 'PersistentVolumeClaim')
    .filter(({ regarding }) => claims.includes(regarding?.name ?? ''))
    // That there is neither a volume nor a class is told as if it were normal.
    .filter(({ type, reason }) => type === 'Warning' || reason === 'FailedBinding')
    .toSorted(newestFirst)
  if (latest === undefined) return undefined
  const message = `PersistentVolumeClaim "${latest.regarding?.name}": ${latest.note ?? ''}`
  return { reason: latest.reason, message, pod: pod.metadata.name }
}

/** Lists the names of the claims that a pod mounts. */
export function claimsOf({ spec }: Pick<FailingPod, 'spec'>): readonly string[] {
  return (spec.volumes ?? []).flatMap(
    ({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName ?? [],
  )
}

function eventsOf({ metadata }: FailingPod, events: readonly Event[]): readonly Event[] {
  return events.filter(
    ({ regarding }) => regarding?.uid === metadata.uid && regarding !== undefined,
  )
}

/** Puts the newest event first, and of two of the same second the warning: a success is written before a failure. */
function newestFirst(one: Event, other: Event): number {
  return (
    msOf(other) - msOf(one) || Number(one.type !== 'Warning') - Number(other.type !== 'Warning')
  )
}

function msOf(event: Event): number {
  return Math.floor(Date.parse(timeOfEvent(event)) / 1000) * 1000
}

/** Returns the latest start of a running container; undefined if none runs. */
function startOf({ status }: FailingPod): number | undefined {
  const all = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]
  const starts = all.map(({ state }) => Date.parse(startedAtOf(state)))
  const known = starts.filter((ms) => !Number.isNaN(ms))
  return known.length === 0 ? undefined : Math.max(...known)
}

function startedAtOf(state: ContainerStatus['state']): string {
  return state?.running?.startedAt ?? ''
}

function toFailure({ metadata }: FailingPod, event: Event): Failure {
  const { reason, note: message = '' } = event
  const container = containerOf(event)
  return { reason, message, pod: metadata.name, ...(container !== undefined && { container }) }
}

/** Finds the container that an event is about. */
function containerOf({ regarding }: Event): string | undefined {
  return /^spec\.(?:init|ephemeral)?[cC]ontainers\{(.*)\}$/.exec(regarding?.fieldPath ?? '')?.[1]
}
