import type { ModelConfig, ModelSignature } from '@tutti/model-config'
import { type OnnxPort, type OnnxPorts, toSignature } from '../onnx/model-ports.ts'
import type { OrtMetadata } from './ort-binding.ts'

/** An input or output of a run. */
export interface RunPort extends OnnxPort {
  readonly index: number
  /** A scalar of the model that the configuration declares as [1], the only way that it can. */
  readonly isVector: boolean
}

/** A model as its runs see it. */
export interface OnnxContext {
  readonly model: string
  readonly signature: ModelSignature
  /** By name, in the order that slots count them. */
  readonly inputs: ReadonlyMap<string, RunPort>
  readonly outputs: ReadonlyMap<string, RunPort>
  readonly outputNames: readonly string[]
  readonly outputIndexes: readonly number[]
}

/** @param session - what it says of its outputs: ranks that the file does not declare; [] when it does not know either. */
export function toContext(
  config: ModelConfig,
  file: OnnxPorts,
  session: readonly OrtMetadata[],
): OnnxContext {
  const completed = file.outputs.map((port) => {
    const shape = session.find(({ name }) => name === port.name)?.shape ?? []
    return port.dims === null && shape.length > 0 ? { ...port, dims: shape } : port
  })
  const vectors = config.output.filter(({ dims }) => dims.length === 1 && dims[0] === 1)
  const names = new Set(vectors.map(({ name }) => name))
  const inputs = file.inputs.map((port, index) => {
    return { ...port, index, isVector: port.dims?.length === 0 }
  })
  const outputs = completed.map((port, index) => {
    return { ...port, index, isVector: port.dims?.length === 0 && names.has(port.name) }
  })
  return {
    model: config.name,
    signature: toSignature({ inputs: file.inputs, outputs: completed }),
    inputs: new Map(inputs.map((port) => [port.name, port])),
    outputs: new Map(outputs.map((port) => [port.name, port])),
    outputNames: outputs.map(({ name }) => name),
    outputIndexes: outputs.map(({ index }) => index),
  }
}
