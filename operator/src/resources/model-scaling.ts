import { DEFAULT_REPLICAS, type ModelSpec, type RouterSpec, toMilliseconds } from '@tutti/api'

/** The scaling of a Model or a Router with all defaults filled in: by the operator (Native), by an HPA, or by nobody (None). */
export type Scaling =
  | {
      readonly provider: 'Native'
      /** Fewest replicas while the Model does not sleep; at least 1. */
      readonly min: number
      readonly max: number
      /** Target of requests in flight and queued for each replica; absent: as many as a replica executes at once. */
      readonly target?: number
      /** Milliseconds over which scaling up takes the smallest recommendation. Likewise, scaling down takes the largest one. */
      readonly upWindowMs: number
      readonly downWindowMs: number
      /** Milliseconds without a request after which the Model sleeps: it has no pods. Absent: it always has some. */
      readonly idleAfterMs?: number
    }
  | { readonly provider: 'HPA'; readonly min: number; readonly max: number }
  | { readonly provider: 'None'; readonly replicas: number }

const DOWN_WINDOW_S = 300
const IDLE_AFTER = '5m'

export function toScaling({
  scaling = {},
  suspend = false,
}: Pick<ModelSpec, 'scaling' | 'suspend'>): Scaling {
  if (suspend) return { provider: 'None', replicas: 0 }
  const { provider = 'Native', replicas = DEFAULT_REPLICAS } = scaling
  if (provider === 'None') return { provider, replicas }
  const min = Math.max(1, scaling.minReplicas ?? 1)
  const bounds = { min, max: scaling.maxReplicas ?? min }
  return provider === 'HPA' ? { provider, ...bounds } : toNative(scaling, bounds)
}

/**
 * Returns the scaling of a router's pods. The schema refuses the provider Native.
 *
 * @param fallback - pods of a Router that does not say how many it wants, at least.
 */
export function toRouterScaling(
  { scaling = {} }: Pick<RouterSpec, 'scaling'>,
  fallback: number,
): Scaling {
  const { minReplicas, maxReplicas, metrics, behavior, replicas = fallback } = scaling
  const isBounded = [minReplicas, maxReplicas, metrics, behavior].some((one) => one !== undefined)
  const { provider = isBounded ? 'HPA' : 'None' } = scaling
  if (provider !== 'HPA') return { provider: 'None', replicas }
  const min = minReplicas ?? Math.min(fallback, maxReplicas ?? fallback)
  return { provider, min, max: maxReplicas ?? min }
}

function toNative(
  { minReplicas, idleAfter = IDLE_AFTER, target, behavior }: NonNullable<ModelSpec['scaling']>,
  bounds: { readonly min: number; readonly max: number },
): Scaling {
  const { scaleUp, scaleDown } = behavior ?? {}
  return {
    provider: 'Native',
    ...bounds,
    ...(target !== undefined && { target }),
    upWindowMs: (scaleUp?.stabilizationWindowSeconds ?? 0) * 1000,
    downWindowMs: (scaleDown?.stabilizationWindowSeconds ?? DOWN_WINDOW_S) * 1000,
    ...(minReplicas === 0 && { idleAfterMs: toMilliseconds(idleAfter) }),
  }
}

/**
 * Plans the replicas that the operator writes into the Deployment; undefined if an HPA owns the number. An HPA leaves 0 replicas as they
 * are, so the operator writes its minimum then, after a suspension say.
 *
 * @param o.live - replicas of the Deployment now, which stay after a change of the provider.
 * @param o.wanted - last decision of the operator's own scaling; undefined if there is none.
 */
export function planReplicas(
  scaling: Scaling,
  o: { readonly live?: number | undefined; readonly wanted?: number | undefined },
): number | undefined {
  if (scaling.provider === 'HPA') return o.live === 0 ? scaling.min : undefined
  if (scaling.provider === 'None') return scaling.replicas
  const replicas = o.wanted ?? o.live ?? scaling.min
  return replicas === 0 && maySleep(scaling) ? 0 : clamp(replicas, scaling)
}

/** Tells whether a Model may have no pods while no request comes. */
export function maySleep(scaling: Scaling | undefined): boolean {
  return scaling?.provider === 'Native' && scaling.idleAfterMs !== undefined
}

/** Limits a number of replicas to the bounds. */
export function clamp(
  replicas: number,
  { min, max }: { readonly min: number; readonly max: number },
): number {
  return Math.min(max, Math.max(min, replicas))
}

/** True if a Model or a Router may have more than one pod, so that a disruption budget is useful. */
export function mayHaveSeveral(scaling: Scaling): boolean {
  return scaling.provider === 'None' ? scaling.replicas > 1 : scaling.max > 1
}
