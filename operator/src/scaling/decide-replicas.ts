import { clamp, type Scaling } from '../resources/model-scaling.ts'

/** How loaded one ready pod is with a model. */
export interface PodLoad {
  /** Requests that execute. */
  readonly inFlight: number
  /** Requests that wait. */
  readonly queued: number
  /** Requests that can execute at once. */
  readonly slots: number
}

export type NativeScaling = Extract<Scaling, { readonly provider: 'Native' }>

/** A number of replicas that the load asked for at a time. */
export interface Recommendation {
  readonly at: number
  readonly replicas: number
}

export interface ScalingInput {
  readonly scaling: NativeScaling
  /** What is wanted now. */
  readonly current: number
  /** Of every ready pod; undefined for one that did not answer. */
  readonly loads: readonly (PodLoad | undefined)[]
  /** Earlier recommendations, as the last decision gave them. */
  readonly recommendations: readonly Recommendation[]
  /** On the clock, milliseconds. */
  readonly now: number
}

export interface ScalingDecision {
  readonly replicas: number
  /** To be handed in again. */
  readonly recommendations: readonly Recommendation[]
}

/** As the HPA has it: a tenth off the target is no reason to change anything. */
const TOLERANCE = 0.1
/** In one decision, at most twice as many, or four more: a load that was read too high must not fill a cluster. */
const GROWTH = 2
const GROWTH_STEP = 4

/**
 * How many replicas a model is to have: as many as its requests in flight and queued want, within the bounds. Up counts the
 * smallest recommended of the up window, down the largest of the down window, as the HPA does it; a pod that does not answer never makes
 * it fewer. Pure.
 */
export function decideReplicas(input: ScalingInput): ScalingDecision {
  const { scaling, current, now } = input
  const recommended = clamp(recommend(input), scaling)
  // A first decision, after a start of the operator say, does not know what was before: what is there counts as a recommended.
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
  // Those that are silent may be the busy ones.
  return known.length < loads.length ? Math.max(recommended, current) : recommended
}

function averageSlots(loads: readonly PodLoad[]): number {
  const slots = loads.reduce((sum, load) => sum + load.slots, 0)
  return Math.max(1, slots / loads.length)
}
