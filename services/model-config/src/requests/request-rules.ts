import { type Datatype, fromConfigDatatype, type Shape } from '@tutti/tensor'
import type { ModelConfig } from '../model/model-config.ts'

/** What a model declares about one input. */
export interface InputRule {
  readonly name: string
  readonly datatype: Datatype | undefined
  readonly dims: Shape
  /** The shape that the model sees instead of `dims`. */
  readonly reshape: Shape | undefined
}

/** What a model declares, ready to be looked up. */
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
