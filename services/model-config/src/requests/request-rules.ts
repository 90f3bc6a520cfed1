import { type Datatype, fromConfigDatatype, type Shape } from '@tutti/tensor'
import type { ModelConfig } from '../model/model-config.ts'

/** The declaration of one input by a model. */
export interface InputRule {
  readonly name: string
  readonly datatype: Datatype | undefined
  readonly dims: Shape
  /** The shape that the model sees instead of `dims`. */
  readonly reshape: Shape | undefined
}

/** The declarations of a model, ready to be looked up. */
export interface RequestRules {
  readonly config: ModelConfig
  readonly inputs: ReadonlyMap<string, InputRule>
  readonly outputs: ReadonlySet<string>
  /** Inputs that are not optional. */
  readonly required: number
}

/** Gathers what the checks look up for every request of a model. */
export function compileRules(config: ModelConfig): RequestRules {
  const inputs = config.input.map(({ name, data_type: type, dims, reshape }) => {
    return { name, datatype: fromConfigDatatype(type), dims, reshape: reshape?.shape }
  })
  return {
    config,
    inputs: new Map(inputs.map((rule) => [rule.name, rule])),
    outputs: new Set(config.output.map((io) => io.name)),
    required: config.input.filter((io) => !io.optional).length,
  }
}
