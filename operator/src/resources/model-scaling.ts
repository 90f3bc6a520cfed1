import { DEFAULT_REPLICAS, type ModelSpec } from '@tutti/api'

/** Who decides on the replicas, with every default filled in. */
export type Scaling =
  | {
      readonly provider: 'Native'
      readonly min: number
      readonly max: number
      /** Requests in flight and queued that are wanted per replica; absent: as many as one executes at once. */
      readonly target?: number
      /** For how long the most careful of the recommendations counts. */
      readonly upWindowMs: number
      readonly downWindowMs: number
    }
  | { readonly provider: 'HPA'; readonly min: number; readonly max: number }
  | { readonly provider: 'None'; readonly replicas: number }

const DOWN_WINDOW_S = 300

export function toScaling({ scaling = {} }: Pick<ModelSpec, 'scaling'>): Scaling {
  const { provider = 'Native', replicas = DEFAULT_REPLICAS } = scaling
  if (provider === 'None') return { provider, replicas }
  const min = scaling.minReplicas ?? 1
  const bounds = { min, max: scaling.maxReplicas ?? min }
  return provider === 'HPA' ? { provider, ...bounds } : toNative(scaling, bounds)
}

function toNative(
  { target, behavior }: NonNullable<ModelSpec['scaling']>,
  bounds: { readonly min: number; readonly max: number },
): Scaling {
  const { scaleUp, scaleDown } = behavior ?? {}
  return {
    provider: 'Native',
    ...bounds,
    ...(target !== undefined && { target }),
    upWindowMs: (scaleUp?.stabilizationWindowSeconds ?? 0) * 1000,
    downWindowMs: (scaleDown?.stabilizationWindowSeconds ?? DOWN_WINDOW_S) * 1000,
  }
}

/**
 * The replicas that the operator writes into the Deployment; undefined where somebody else owns the number.
 *
 * @param o.live - what the Deployment has now, so that a change of the provider makes no jump.
 * @param o.wanted - what the operator's own scaling decided last.
 */
export function planReplicas(
  scaling: Scaling,
  o: { readonly live?: number | undefined; readonly wanted?: number | undefined },
): number | undefined {
  if (scaling.provider === 'HPA') return undefined
  if (scaling.provider === 'None') return scaling.replicas
  return clamp(o.wanted ?? o.live ?? scaling.min, scaling)
}

/** The number within the bounds. */
export function clamp(
  replicas: number,
  { min, max }: { readonly min: number; readonly max: number },
): number {
  return Math.min(max, Math.max(min, replicas))
}

/** True if there may be more than one pod, so that a drain of a node could take the last but one. */
export function mayHaveSeveral(scaling: Scaling): boolean {
  return scaling.provider === 'None' ? scaling.replicas > 1 : scaling.max > 1
}
