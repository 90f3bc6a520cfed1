import type { ModelConfig } from '@tutti/model-config'
import type { OnnxPort, OnnxPorts } from '../onnx/model-ports.ts'
import { type RaggedRules, toRaggedRules } from './ragged.ts'

/** An input or output of a run. */
export interface RunPort extends OnnxPort {
  readonly index: number
  /** A scalar of the model that the configuration declares as [1], the only way that it can. */
  readonly isVector: boolean
}

/** A model as its runs see it. */
export interface OnnxContext {
  readonly model: string
  /** By name, in the order that runs count them. */
  readonly inputs: ReadonlyMap<string, RunPort>
  readonly outputs: ReadonlyMap<string, RunPort>
  readonly outputNames: readonly string[]
  readonly outputIndexes: readonly number[]
  /** Undefined for a model without ragged batches. */
  readonly ragged: RaggedRules | undefined
  /** Elements that an input of BYTES may have. */
  readonly maxStrings: number
}

/** Joins what a configuration and the model's file say, as it is looked up for every run. */
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
