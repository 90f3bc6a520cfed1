import type { CancelSignal } from '@tutti/errors'
import type { Stored } from '@tutti/kube'
import { planReplicas, type Scaling } from '../resources/model-scaling.ts'
import type { DeploymentRecord } from './kept-objects.ts'
import type { ReplicasGuard, ReplicasWriter } from './replicas-guard.ts'

/** The scaler that gives the replicas for the provider Native. */
export interface OwnScaler {
  wanted(key: string, uid: string): number | undefined
  forget(key: string): void
}

/** Replicas to write; none where they are left to another client, which is then named. */
export interface PlannedReplicas {
  readonly replicas: number | undefined
  readonly replicasWriter?: ReplicasWriter | undefined
}

/** Plans the replicas of a Deployment by its scaling, unless another client writes them. @throws KubeError */
export async function planOwnReplicas(o: {
  /** Key of the Deployment's owner, `namespace/name`. */
  readonly key: string
  readonly uid: string
  readonly scaling: Scaling
  readonly deployment: Stored<DeploymentRecord> | undefined
  readonly scaler: OwnScaler
  readonly guard: ReplicasGuard
  readonly signal: CancelSignal
}): Promise<PlannedReplicas> {
  const { key, uid, scaling, deployment, scaler, guard, signal } = o
  if (scaling.provider !== 'Native') scaler.forget(key)
  const live = deployment?.spec.replicas
  const planned = planReplicas(scaling, { live, wanted: scaler.wanted(key, uid) })
  const replicasWriter = await guard.find({ key, deployment, planned, signal })
  if (replicasWriter === undefined) return { replicas: planned }
  // A decision from before is no measure for the time after.
  scaler.forget(key)
  return { replicas: undefined, replicasWriter }
}
