import { type ConditionState, isTrue } from '../condition-state.ts'
import { toWriterText } from '../replicas-guard.ts'
import type { ModelWorld } from './model-world.ts'

/** Builds the condition for another client that writes the replicas of the Model's Deployment; undefined if there is none. */
export function checkReplicasWriter({
  replicasWriter,
  deployment,
  model,
}: ModelWorld): ConditionState | undefined {
  if (replicasWriter === undefined || deployment === undefined) return undefined
  const want = `want scaling.provider None and the Model "${model.metadata.name}" as its target`
  const text = toWriterText(replicasWriter, deployment)
  return isTrue('ReplicasNotOwned', `${text}; to let it decide, ${want}; else delete it`)
}
