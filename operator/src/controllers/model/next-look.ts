import { toLatePodsDelayMs } from '../../pods/late-pods.ts'
import {
  acceptedGate,
  areContainersReady,
  isFetching,
  mainStatusOf,
  type PodState,
  statusOf,
} from '../../pods/pod-state.ts'
import { CLAIM_REASONS } from './claim-refusal.ts'
import { canServe, currentPods } from './model-pods.ts'
import type { ModelWorld } from './model-world.ts'
import { checkRoutable } from './routable-condition.ts'

/** Time until the next look while a pod waits for routers, which hear of a revision within a moment. */
const SOON_MS = 300
const LATER_MS = 2000
/** Time after its containers became ready from which a waiting pod is looked at less often. */
const PATIENCE_MS = 15_000
/** A process that fetches or loads says nothing by itself when it gets on, or fails. */
const LOADING_MS = 5000
const BLOCKED_MS = 10_000

/**
 * Computes when to look at a Model again for changes that no watch reports. Pure.
 *
 * @returns milliseconds from now; undefined if the Model waits for nothing.
 */
export function toNextLook(world: ModelWorld, epochMs: number): number | undefined {
  const delays = [
    toGateDelayMs(world, epochMs),
    toLoadingDelayMs(world),
    toBlockedDelayMs(world),
    world.replicasWriter?.againMs,
    toLateDelayMs(world, epochMs),
  ]
  const known = delays.filter((delayMs) => delayMs !== undefined)
  return known.length === 0 ? undefined : Math.min(...known)
}

/** True if the containers of a pod are ready but its readiness gate of a Model is not open yet. @param model - metadata.name */
export function isWaitingForGate(pod: PodState, model: string): boolean {
  return areContainersReady(pod) && statusOf(pod, acceptedGate(model)) !== 'True'
}

/** Returns the time until routers may have heard of the revision that a pod serves. */
function toGateDelayMs(world: ModelWorld, epochMs: number): number | undefined {
  // There is no router to ask: the first router that is ready brings it back.
  if (world.routers.length === 0) return undefined
  const waiting = world.pods.filter(({ pod }) => isWaitingForGate(pod, world.model.metadata.name))
  if (waiting.some(({ pod }) => readyForMs(pod, epochMs) < PATIENCE_MS)) return SOON_MS
  const isUnrouted =
    currentPods(world.pods).some(canServe) && checkRoutable(world).status !== 'True'
  return waiting.length > 0 || isUnrouted ? LATER_MS : undefined
}

function readyForMs(pod: PodState, epochMs: number): number {
  const condition = pod.status?.conditions?.find(({ type }) => type === 'ContainersReady')
  return epochMs - Date.parse(condition?.lastTransitionTime ?? '1970-01-01')
}

/** Returns the time until a process that fetches or loads may report more. */
function toLoadingDelayMs({ pods }: ModelWorld): number | undefined {
  const isLoading = currentPods(pods).some(
    ({ pod }) =>
      !areContainersReady(pod) &&
      (isFetching(pod) || mainStatusOf(pod)?.state?.running !== undefined),
  )
  return isLoading ? LOADING_MS : undefined
}

/** Returns the time until an obstacle may be gone: no watch reports other people's objects, quotas and policies. */
function toBlockedDelayMs({ outcomes, refusal }: ModelWorld): number | undefined {
  const isBlocked =
    CLAIM_REASONS.has(refusal?.reason ?? '') ||
    outcomes.some(({ result }) => result === 'nameConflict' || result === 'refused')
  return isBlocked ? BLOCKED_MS : undefined
}

/** Returns the time until events may say more about pods that do not become ready. */
function toLateDelayMs({ pods }: ModelWorld, epochMs: number): number | undefined {
  return toLatePodsDelayMs(
    pods.map(({ pod }) => pod),
    epochMs,
  )
}
