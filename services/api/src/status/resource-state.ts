import type { Condition, EnsembleStatus, ModelStatus, RouterStatus } from './status.ts'

/** A Model, an Ensemble or a Router, as the API server gives it. */
export interface ReportedResource {
  readonly metadata: { readonly generation?: number; readonly creationTimestamp: string }
  readonly status?: ModelStatus | EnsembleStatus | RouterStatus
}

/** The state of a resource by its conditions. Only a resource that is Ready has no `cause`. */
export interface ResourceState {
  readonly state: 'Ready' | 'Degraded' | 'NotReady'
  readonly cause?: { readonly reason: string; readonly message: string }
}

type Cause = NonNullable<ResourceState['cause']>

/** An operator that is there has looked at a resource within this time; after it the cause has a hint. */
const LOOK_MS = 5000

/**
 * Finds the state of a resource and its cause from its conditions. Pure.
 *
 * @param nowMs - milliseconds since the epoch.
 */
export function resourceState(resource: ReportedResource, nowMs: number): ResourceState {
  const { status } = resource
  const unseen = causeOfUnseen(resource, nowMs)
  if (unseen !== undefined) return { state: 'NotReady', cause: unseen }
  const ready = conditionOf(status, 'Ready')
  const degraded = conditionOf(status, 'Degraded')
  if (ready?.status === 'True') {
    return degraded?.status === 'True'
      ? { state: 'Degraded', cause: toCause(degraded) }
      : { state: 'Ready' }
  }
  const cause = refusalOf(resource) ??
    ready ?? { reason: 'Pending', message: 'it has no status yet' }
  return { state: 'NotReady', cause: toCause(cause) }
}

/**
 * Finds the condition by which the operator refused the newest generation of a resource.
 *
 * @returns undefined if the operator did not refuse it, has not seen it yet, or waits for something.
 */
export function refusalOf(resource: ReportedResource): Condition | undefined {
  if (!isObserved(resource)) return undefined
  const accepted = conditionOf(resource.status, 'Accepted')
  const isRefused = accepted?.status === 'False' && !WAITING_REASONS.has(accepted.reason)
  return isRefused ? accepted : undefined
}

/** Reasons that only say that something else is not there yet. The cause stands with that other thing. */
export const WAITING_REASONS: ReadonlySet<string> = new Set([
  'SchemaPending',
  'Pending',
  'NotReady',
  'NotFound',
  'NotAccepted',
  'NotRouted',
  'NoReplica',
  'PodsNotReady',
  'ProgressDeadlineExceeded',
  'Reconciling',
  'RollingOut',
  'Waiting',
  'NoRouters',
])

/** Finds the condition of a type; returns undefined if the status has none. */
export function conditionOf(
  status: ReportedResource['status'],
  type: string,
): Condition | undefined {
  return status?.conditions?.find((condition) => condition.type === type)
}

function isObserved({ metadata: { generation = 0 }, status }: ReportedResource): boolean {
  return (status?.observedGeneration ?? 0) >= generation
}

function causeOfUnseen(resource: ReportedResource, nowMs: number): Cause | undefined {
  if (isObserved(resource)) return undefined
  const { generation, creationTimestamp } = resource.metadata
  const isNew = nowMs - Date.parse(creationTimestamp) < LOOK_MS
  const hint = isNew
    ? ''
    : '; is it running? kubectl get pods -A -l app.kubernetes.io/part-of=tutti'
  return {
    reason: 'NotObserved',
    message: `the operator has not looked at generation ${generation} yet${hint}`,
  }
}

function toCause({ reason, message }: Cause): Cause {
  return { reason, message }
}
