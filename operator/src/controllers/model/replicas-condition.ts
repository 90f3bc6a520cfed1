import { REPLICAS_UNSET } from '@tutti/ensemble'
import { type ConditionState, isTrue } from '../condition-state.ts'
import { toWriterText } from '../replicas-guard.ts'
import type { ModelWorld } from './model-world.ts'

/** Whether somebody else writes the replicas that the Model leaves to the operator; undefined if not. */
export function checkReplicasWriter({
  replicasWriter,
  deployment,
  scaling,
  model,
}: ModelWorld): ConditionState | undefined {
  if (replicasWriter === undefined || deployment === undefined) return undefined
  const { name } = model.metadata
  const want =
    scaling?.provider === 'None'
      ? `scaling.replicas ${REPLICAS_UNSET}`
      : `scaling.provider None, and an autoscaler best at the Model "${name}"`
  const text = toWriterText(replicasWriter, deployment)
  return isTrue('ReplicasNotOwned', `${text}; to let it decide, want ${want}; else delete it`)
}
