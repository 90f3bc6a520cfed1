import type { Condition, EnsembleStatus, ModelStatus, RouterStatus } from '@tutti/ensemble'
import type { Stored } from '@tutti/kube'
import type { EnsembleObject, ModelObject, RouterObject } from '../resources.ts'
import type { Cause, NodeState } from './tree.ts'

export interface OwnState {
  readonly state: NodeState
  readonly cause?: Cause
}

/** An operator that is there has looked at a resource within this time. */
const LOOK_MS = 5000

/** What a resource says of itself. Pure. @param nowMs - since the epoch. */
export function stateOf(
  object: Stored<ModelObject | EnsembleObject | RouterObject>,
  nowMs: number,
): OwnState {
  const { metadata, status } = object
  const unseen = causeOfUnseen(metadata, status, nowMs)
  if (unseen !== undefined) return { state: 'NotReady', cause: unseen }
  const ready = conditionOf(status, 'Ready')
  const degraded = conditionOf(status, 'Degraded')
  if (ready?.status === 'True') {
    return degraded?.status === 'True'
      ? { state: 'Degraded', cause: toCause(degraded) }
      : { state: 'Ready' }
  }
  const refused = conditionOf(status, 'Accepted')
  if (refused?.status === 'False' && !WAITING.has(refused.reason)) {
    return { state: 'NotReady', cause: toCause(refused) }
  }
  const cause = ready ?? { reason: 'Pending', message: 'it has no status yet' }
  return { state: 'NotReady', cause: toCause(cause) }
}

/** Reasons that say only that something else is not there yet: what that is has a cause of its own. */
export const WAITING: ReadonlySet<string> = new Set([
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

export function conditionOf(
  status: ModelStatus | EnsembleStatus | RouterStatus | undefined,
  type: string,
): Condition | undefined {
  return status?.conditions?.find((condition) => condition.type === type)
}

function causeOfUnseen(
  { generation = 0, creationTimestamp }: Stored<ModelObject>['metadata'],
  status: ModelStatus | EnsembleStatus | RouterStatus | undefined,
  nowMs: number,
): Cause | undefined {
  if ((status?.observedGeneration ?? 0) >= generation) return undefined
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
