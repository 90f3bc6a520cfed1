import type { ModelConfig } from '@tutti/model-config'
import type { Graph, GraphStep } from '../graph.ts'
import type { ConfigOfStep, TensorDefinitions } from './find-tensor-faults.ts'
import type { AcceptedReason } from './problem.ts'

/*
 * The faults of constants, conditions, repetitions and absent tensors, for which config.pbtxt has no words.
 */

/** Where a rule is broken. */
export type Place =
  | { readonly step: number; readonly field: string }
  | { readonly output: number; readonly field: string }
  | { readonly input: string; readonly field: string }

/** A broken rule. */
export interface ConditionFault {
  readonly reason: AcceptedReason
  readonly at: Place
  readonly got: string
  readonly want: string
}

/** A graph that is checked. */
export interface Checked {
  readonly config: ModelConfig
  readonly graph: Graph
  /** Configurations of models as the graph sees them, as far as they are known. */
  readonly configOf: ConfigOfStep
  /** The models' own configurations. */
  readonly modelOf: ConfigOfStep
  readonly definitions: TensorDefinitions
  /** Lists the outputs that responses of a step's model may lack. */
  readonly optionalOutputsOf: (step: GraphStep) => readonly string[]
}

/** Names the place of a fault in a text. */
export function describePlace({ steps, outputs }: Graph, at: Place): string {
  if ('step' in at) return `step '${steps[at.step]?.name}', ${at.field}`
  if ('output' in at) return `output '${outputs[at.output]?.name}', ${at.field}`
  return `input '${at.input}', ${at.field}`
}
