import { type IntOrString, toFailureText } from '@tutti/kube'
import { isAlive, isReady } from '../../pods/pod-state.ts'
import { type ConditionState, isFalse, isTrue, isUnknown } from '../condition-state.ts'
import { isObserved, podCountsOf, templateOf } from '../deployment-state.ts'
import type { DeploymentState } from '../kept-objects.ts'
import { areRequestsHeld } from './asleep.ts'
import { checkChildren, findPassing } from './model-conditions.ts'
import { type ModelPod, readyVersionsOf } from './model-pods.ts'
import { count, isOfHost, type ModelWorld } from './model-world.ts'

const ASLEEP = 'no pods while no request comes: the first request starts one, and waits for it'
const SUSPENDED = 'spec.suspend: no pods are wanted'

/** Computes the condition WorkloadAvailable: whether enough pods are available, of any template. */
export function checkWorkload(world: ModelWorld): ConditionState {
  const { deployment, failure } = world
  if (deployment === undefined && countsOf(world).available === 0) {
    const blocked = checkChildren(world)
    if (blocked !== undefined) return isFalse(blocked.reason, blocked.message)
    return isUnknown('Pending', 'the Deployment is not there yet')
  }
  const { wanted, available } = countsOf(world)
  if (wanted === 0) return checkWithoutPods(world)
  const needed = neededOf(world, wanted)
  const text = `${available} of ${count(wanted, 'wanted pod')} available`
  if (available >= needed) return isTrue('Available', text)
  if (available === 0 && areRequestsHeld(world))
    return isTrue('Waking', `${text}; requests wait for it`)
  const blocked = checkChildren(world)
  if (blocked !== undefined) return isFalse(blocked.reason, blocked.message)
  if (failure !== undefined) return isFalse(failure.reason, toFailureText(failure))
  return isFalse('PodsNotReady', `${text}, want ${needed}`)
}

/**
 * Counts the pods of a Model: as Kubernetes counts those of its own Deployment. Where it shares pods, those count that have it, at its host or,
 * while it moves, where it still is.
 */
export function countsOf({ host, deployment, pods }: ModelWorld): ReturnType<typeof podCountsOf> {
  const counts =
    deployment === undefined
      ? { wanted: 1, all: 0, updated: 0, available: 0 }
      : podCountsOf(deployment)
  if (host.isItself) return counts
  const both = pods.filter(({ pod }) => isAlive(pod))
  const atHost = both.filter(({ pod }) => isOfHost(pod, host))
  const alive = atHost.some(isServing) ? atHost : both
  const updated = alive.filter(({ isCurrent }) => isCurrent).length
  return { ...counts, all: alive.length, updated, available: alive.filter(isServing).length }
}

function isServing(one: ModelPod): boolean {
  return isReady(one.pod) && readyVersionsOf(one).length > 0
}

function checkWithoutPods(world: ModelWorld): ConditionState {
  if (world.spec?.suspend === true) return isFalse('Suspended', SUSPENDED)
  if (areRequestsHeld(world)) return isTrue('Asleep', ASLEEP)
  return isFalse('ScaledToZero', 'no pods are wanted')
}

/** Computes the condition Suspended: whether the Model has no pods because its spec says so. */
export function checkSuspended({ spec, deployment }: ModelWorld): ConditionState {
  if (spec?.suspend !== true) return isFalse('NotSuspended', 'spec.suspend is not true')
  const all = deployment?.status?.replicas ?? 0
  return all > 0
    ? isFalse('Suspending', `spec.suspend: ${count(all, 'pod')} left`)
    : isTrue('Suspended', SUSPENDED)
}

/** Returns the fewest pods that count as enough: scaling up does not make a Model unavailable. */
function neededOf({ scaling, rollout }: ModelWorld, wanted: number): number {
  const fewest = scaling === undefined || scaling.provider === 'None' ? 1 : scaling.min
  const base = Math.min(wanted, fewest)
  return Math.max(1, base - toCount(rollout?.maxUnavailable ?? 0, base))
}

function toCount(value: IntOrString, of: number): number {
  return typeof value === 'number' ? value : Math.floor((Number.parseInt(value, 10) * of) / 100)
}

/** Computes the condition Progressing: whether pods are being replaced, created or removed. */
export function checkProgress(world: ModelWorld): ConditionState {
  const { deployment } = world
  const held = checkHeld(world)
  const waiting = held ?? findPassing(world)
  if (waiting !== undefined) return waiting
  if (deployment === undefined) return isTrue('Reconciling', 'the Deployment is not there yet')
  if (!isObserved(deployment)) return isTrue('Reconciling', 'the Deployment has just changed')
  if (templateOf(deployment) !== world.template && !world.host.isItself) {
    return isTrue('Reconciling', `the pods of ${world.host.title} do not have it yet`)
  }
  return checkRollout(deployment)
}

function checkRollout(deployment: DeploymentState): ConditionState {
  const { wanted, all, updated, available } = podCountsOf(deployment)
  const text = `${updated} of ${count(wanted, 'pod')} of the newest template, ${all - updated} old; ${available} available, old or new`
  const late = deployment.status?.conditions?.find(({ type }) => type === 'Progressing')
  if (late?.reason === 'ProgressDeadlineExceeded') return isFalse(late.reason, text)
  const isComplete = updated === wanted && all === updated && available >= wanted
  if (isComplete) return isFalse('Complete', text)
  // A user paused it, so the operator leaves it so. Scaling goes on there, new templates wait.
  const isHeld = deployment.spec.paused === true && all !== updated
  if (isHeld) return isFalse('DeploymentPaused', toPausedText(deployment, text))
  return isTrue('RollingOut', text)
}

function toPausedText({ metadata: { name, namespace } }: DeploymentState, text: string): string {
  return `Deployment "${name}": spec.paused is true, kubectl rollout resume deployment/${name} -n ${namespace} lets it go on; ${text}`
}

/** Finds why the workload cannot change; undefined if it can. */
function checkHeld(world: ModelWorld): ConditionState | undefined {
  const { spec, refusal, hold } = world
  if (refusal !== undefined) return isFalse(refusal.reason, refusal.message)
  if (spec?.paused === true) return isFalse('Paused', 'spec.paused: pods are left as they are')
  if (hold !== undefined) return isFalse(hold.reason, hold.message)
  const blocked = checkChildren(world)
  return blocked === undefined ? undefined : isFalse(blocked.reason, blocked.message)
}

/** True if all pods of the Deployment are of the desired template, and there is at least one if any is wanted. */
export function isRolledOut({
  deployment,
  template,
}: Pick<ModelWorld, 'deployment' | 'template'>): boolean {
  if (deployment === undefined || !isObserved(deployment)) return false
  const { wanted, all, updated } = podCountsOf(deployment)
  return templateOf(deployment) === template && updated >= Math.min(1, wanted) && all === updated
}
