import type { ModelSpec } from '@tutti/api'
import type { Failure } from '@tutti/kube'
import { isAlive, type PodState } from '../../pods/pod-state.ts'
import type { DeploymentState } from '../kept-objects.ts'
import { isRolledOut } from './workload-conditions.ts'

/** The scheduler's words for devices that no node has left: those of an extended resource, and those of claims. */
const NO_DEVICE = /Insufficient [^\s,;]+\/[^\s,;]+|cannot allocate all claims/

/** A rollout of a Model's pods. */
export interface PodRollout {
  readonly rollout?: ModelSpec['rollout'] | undefined
  readonly deployment?: DeploymentState | undefined
  /** Digest of the desired template. */
  readonly template?: string | undefined
  readonly pods: readonly PodState[]
}

/**
 * Tells whether a rollout takes an old pod away before the new one has a node: the Model allows it, and a new pod found no device.
 * It stays so until the rollout is complete, because the next new pod would find none either. Pure.
 */
export function replacesFirst(o: PodRollout): boolean {
  const { rollout, deployment } = o
  if (rollout?.whenFull !== 'Replace' || deployment === undefined || isRolledOut(o)) return false
  return deployment.spec.maxSurge === 0 || waitsForDevice(o)
}

/** Says of a new pod that finds no device what lets the rollout go on. Gives other failures as they are. Pure. */
export function explainFull(failure: Failure | undefined, o: PodRollout): Failure | undefined {
  if (failure?.reason !== 'Unschedulable' || !waitsForDevice(o)) return failure
  const { message } = failure
  const remedy =
    o.rollout?.whenFull === 'Replace'
      ? 'rollout.whenFull is Replace: an old pod is taken away first'
      : 'old pods keep their devices until the new pod is ready: free one, or set rollout.whenFull: Replace in the Model'
  return { ...failure, reason: 'NoFreeDevice', message: `${message} ${remedy}` }
}

/**
 * Tells whether a new pod has no node for want of a device, while older pods have theirs. Which pods are older, only the Deployment
 * knows: pods that `kubectl rollout restart` made have the same template in the operator's eyes.
 */
function waitsForDevice(o: PodRollout): boolean {
  const { deployment, pods } = o
  if (deployment === undefined || isRolledOut(o)) return false
  const alive = pods.filter(isAlive)
  return alive.some(lacksDevice) && alive.some(({ spec }) => spec.nodeName !== undefined)
}

function lacksDevice({ status }: PodState): boolean {
  const scheduled = status?.conditions?.find(({ type }) => type === 'PodScheduled')
  if (scheduled?.status !== 'False' || scheduled.reason !== 'Unschedulable') return false
  return NO_DEVICE.test(scheduled.message ?? '')
}
