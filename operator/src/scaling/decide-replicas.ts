import { clamp, type Scaling } from '../resources/model-scaling.ts'

/** The load of one ready pod with a model. */
export interface PodLoad {
  /** Number of requests that execute. */
  readonly inFlight: number
  /** Number of requests that wait. */
  readonly queued: number
  /** Number of requests that can execute at once. */
  readonly slots: number
  /** Number of requests since the pod's start; absent if the pod does not count them. */
  readonly requests?: number | undefined
}

export type NativeScaling = Extract<Scaling, { readonly provider: 'Native' }>

/** The number of replicas that the load at one time asks for. `at` is in milliseconds of the monotonic clock. */
export interface Recommendation {
  readonly at: number
  readonly replicas: number
}

export interface ScalingInput {
  readonly scaling: NativeScaling
  /** Desired replicas now. */
  readonly current: number
  /** Load of every ready pod; undefined for one that did not answer. */
  readonly loads: readonly (PodLoad | undefined)[]
  /** Recommendations of the last decision; empty at first. */
  readonly recommendations: readonly Recommendation[]
  /** Milliseconds for which no request is known to have come. */
  readonly idleMs?: number
  /** Time now by the monotonic clock, in milliseconds. */
  readonly now: number
}

export interface ScalingDecision {
  readonly replicas: number
  /** Recommendations for the input of the next decision. */
  readonly recommendations: readonly Recommendation[]
}

/** A load within a tenth of the target changes nothing, as with the HPA. */
const TOLERANCE = 0.1
/** Most growth of one decision: twice as many replicas, or four more. A wrong load must not fill a cluster. */
const GROWTH = 2
const GROWTH_STEP = 4

/**
 * Decides the replicas of a model by its requests in flight and queued, within the bounds. Like the HPA, scaling up takes the
 * smallest recommendation of the up window, and scaling down takes the largest one of the down window. While a pod does not
 * answer, the recommendation is not below the current number. A Model that may sleep has no replicas once it was idle for long
 * enough. Pure.
 */
export function decideReplicas(input: ScalingInput): ScalingDecision {
  const { scaling, current, now, idleMs = 0 } = input
  const { idleAfterMs = Number.POSITIVE_INFINITY } = scaling
  // A Model that sleeps is woken by a request, not by a look.
  if (idleMs >= idleAfterMs || (current === 0 && scaling.idleAfterMs !== undefined)) {
    return { replicas: 0, recommendations: [] }
  }
  const recommended = clamp(recommend(input), scaling)
  // The first decision, such as after a start of the operator, has no history: the current number counts as a recommendation.
  const earlier =
    input.recommendations.length > 0 ? input.recommendations : [{ at: now, replicas: current }]
  const longestMs = Math.max(scaling.upWindowMs, scaling.downWindowMs)
  const recommendations = [
    ...earlier.filter(({ at }) => now - at <= longestMs),
    { at: now, replicas: recommended },
  ]
  const within = (windowMs: number): readonly number[] =>
    recommendations.filter(({ at }) => now - at <= windowMs).map(({ replicas }) => replicas)
  const up = scaling.upWindowMs === 0 ? recommended : Math.min(...within(scaling.upWindowMs))
  const down = scaling.downWindowMs === 0 ? recommended : Math.max(...within(scaling.downWindowMs))
  const stable = clamp(current, { min: up, max: down })
  const fastest = Math.max(current * GROWTH, current + GROWTH_STEP)
  return { replicas: clamp(Math.min(stable, fastest), scaling), recommendations }
}

function recommend({ scaling, current, loads }: ScalingInput): number {
  const known = loads.filter((load) => load !== undefined)
  if (known.length === 0) return current
  const requests = known.reduce((sum, { inFlight, queued }) => sum + inFlight + queued, 0)
  const target = scaling.target ?? averageSlots(known)
  const recommended = Math.ceil(requests / target)
  const isNear = Math.abs(requests / (target * current) - 1) <= TOLERANCE
  if (isNear) return current
  // Silent pods may be the busy ones.
  return known.length < loads.length ? Math.max(recommended, current) : recommended
}

function averageSlots(loads: readonly PodLoad[]): number {
  const slots = loads.reduce((sum, load) => sum + load.slots, 0)
  return Math.max(1, slots / loads.length)
}
