import type { ModelConfig } from '@tutti/model-config'
import type { OnnxPort, OnnxPorts } from '../onnx/model-ports.ts'
import { type RaggedRules, toRaggedRules } from './ragged.ts'

/** An input or output of a run. */
export interface RunPort extends OnnxPort {
  readonly index: number
  /** True for a scalar of the model, which the configuration can declare only as [1]. */
  readonly isVector: boolean
}

/** Facts about a model that its runs need. */
export interface OnnxContext {
  readonly model: string
  /** Inputs by name, in the order of their indexes. */
  readonly inputs: ReadonlyMap<string, RunPort>
  readonly outputs: ReadonlyMap<string, RunPort>
  readonly outputNames: readonly string[]
  readonly outputIndexes: readonly number[]
  /** Rules for ragged batches; undefined for a model without them. */
  readonly ragged: RaggedRules | undefined
  /** Most elements of a BYTES input. */
  readonly maxStrings: number
}

/** Joins the facts of a configuration and of the model's file into a form that is quick to look up in every run. */
export function toContext(config: ModelConfig, file: OnnxPorts, maxStrings: number): OnnxContext {
  const vectors = config.output.filter(({ dims }) => dims.length === 1 && dims[0] === 1)
  const names = new Set(vectors.map(({ name }) => name))
  const inputs = file.inputs.map((port, index) => {
    return { ...port, index, isVector: port.dims?.length === 0 }
  })
  const outputs = file.outputs.map((port, index) => {
    return { ...port, index, isVector: port.dims?.length === 0 && names.has(port.name) }
  })
  return {
    model: config.name,
    inputs: new Map(inputs.map((port) => [port.name, port])),
    outputs: new Map(outputs.map((port) => [port.name, port])),
    outputNames: outputs.map(({ name }) => name),
    outputIndexes: outputs.map(({ index }) => index),
    ragged: toRaggedRules(config),
    maxStrings,
  }
}
