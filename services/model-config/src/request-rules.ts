import { type Reason, ServeError } from '@tutti/errors'
import {
  type Datatype,
  fromConfigDatatype,
  type NamedTensor,
  type RequestContext,
  requestPrefix,
  type Shape,
} from '@tutti/tensor'
import type { ModelConfig } from './model-config.ts'

/** A request as it arrives, before it is checked against a model. */
export interface InferRequest {
  readonly context: RequestContext
  readonly inputs: readonly NamedTensor[]
  /** Empty means all. */
  readonly requestedOutputs: readonly string[]
}

/** What a model declares about one input. */
export interface InputRule {
  readonly name: string
  readonly datatype: Datatype | undefined
  readonly dims: Shape
  /** The shape that the model sees instead of `dims`. */
  readonly reshape: Shape | undefined
  readonly optional: boolean
}

/** What a model declares, ready to be looked up. */
export interface RequestRules {
  readonly config: ModelConfig
  readonly inputs: ReadonlyMap<string, InputRule>
  readonly outputs: ReadonlySet<string>
  readonly required: number
}

/** Gathers what the checks look up for every request of a model. */
export function compileRules(config: ModelConfig): RequestRules {
  const inputs = config.input.map((io): [string, InputRule] => [
    io.name,
    {
      name: io.name,
      datatype: fromConfigDatatype(io.data_type),
      dims: io.dims,
      reshape: io.reshape?.shape,
      optional: io.optional,
    },
  ])
  return {
    config,
    inputs: new Map(inputs),
    outputs: new Set(config.output.map((io) => io.name)),
    required: config.input.filter((io) => !io.optional).length,
  }
}

/** Throws about a model's request; `field` is the tensor's name. */
export function refuse(rules: RequestRules, reason: Reason, text: string, field?: string): never {
  const details = { model: rules.config.name, ...(field === undefined ? {} : { field }) }
  throw new ServeError(reason, text, { details })
}

/** Refuses with `[request id: R] ` before the text. */
export function refuseRequest(
  rules: RequestRules,
  request: InferRequest,
  reason: Reason,
  o: { readonly text: string; readonly field?: string },
): never {
  return refuse(rules, reason, requestPrefix(request.context.id) + o.text, o.field)
}

/** The rule of an input by name; an unknown name is refused. */
export function ruleOf(rules: RequestRules, name: string): InputRule {
  const rule = rules.inputs.get(name)
  if (rule !== undefined) return rule
  const text = `unexpected inference input '${name}' for model '${rules.config.name}'`
  return refuse(rules, 'INVALID_REQUEST', text, name)
}
