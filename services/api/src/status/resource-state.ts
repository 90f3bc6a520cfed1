import type { Condition, EnsembleStatus, ModelStatus, RouterStatus } from './status.ts'

/** A Model, an Ensemble or a Router, as the API server gives it. */
export interface ReportedResource {
  readonly metadata: { readonly generation?: number; readonly creationTimestamp: string }
  readonly status?: ModelStatus | EnsembleStatus | RouterStatus
}

/** The state that a resource says of itself; without a cause it is Ready. */
export interface ResourceState {
  readonly state: 'Ready' | 'Degraded' | 'NotReady'
  readonly cause?: { readonly reason: string; readonly message: string }
}

type Cause = NonNullable<ResourceState['cause']>

/** An operator that is there has looked at a resource within this time; after it the cause has a hint. */
const LOOK_MS = 5000

/** The state of a resource and the cause of it, from its conditions. Pure. @param nowMs - since the epoch. */
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

/** The condition by which the operator refused the generation that there is; undefined if it did not, or waits for something. */
export function refusalOf(resource: ReportedResource): Condition | undefined {
  if (!isObserved(resource)) return undefined
  const accepted = conditionOf(resource.status, 'Accepted')
  const isRefused = accepted?.status === 'False' && !WAITING_REASONS.has(accepted.reason)
  return isRefused ? accepted : undefined
}

/** Reasons that say only that something else is not there yet: what that is has a cause of its own. */
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

/** The condition of a type; undefined if the status does not have it. */
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
