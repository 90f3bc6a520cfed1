import { isDecoupled, type ModelConfig } from '@tutti/model-config'
import type { CallRules } from '../call-rules.ts'

/** A rule for the call of a step that the step's model cannot have. */
export interface CallFault {
  /** Field of the step. */
  readonly field: keyof CallRules
  readonly text: string
}

/** Fields by which a request may go to a replica that has nothing of what was before. */
const REPEATING = ['hedge'] as const satisfies readonly (keyof CallRules)[]

/** Finds the rules that the model of a step cannot have: its responses, or its state, are on one replica. */
export function findCallFaults(
  rules: CallRules | undefined,
  model: ModelConfig,
): readonly CallFault[] {
  const why = whyOnce(model)
  if (rules === undefined || why === undefined) return []
  return REPEATING.filter((field) => rules[field] !== undefined).map((field) => {
    return { field, text: `${why}; want no ${field} for '${model.name}'` }
  })
}

function whyOnce(model: ModelConfig): string | undefined {
  if (isDecoupled(model)) return 'its responses are a stream, of which each replica has its own'
  return model.sequence_batching && 'a sequence has its state on one replica'
}
