import { type Datatype, fromConfigDatatype, type Shape } from '@tutti/tensor'
import type { ModelConfig } from '../model/model-config.ts'

/** The declaration of one input by a model. */
export interface InputRule {
  readonly name: string
  readonly datatype: Datatype | undefined
  readonly dims: Shape
  /** Shape that the model sees instead of `dims`; undefined without a reshape. */
  readonly reshape: Shape | undefined
}

/** The inputs and outputs that a model declares, by name. */
export interface RequestRules {
  readonly config: ModelConfig
  readonly inputs: ReadonlyMap<string, InputRule>
  readonly outputs: ReadonlySet<string>
  /** Number of inputs that are not optional. */
  readonly required: number
}

/** Collects from a configuration what the checks of each request look up. */
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
