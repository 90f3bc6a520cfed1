import type { ModelConfig, ModelInput, ModelOutput } from '@tutti/model-config'
import { DATATYPES } from '@tutti/tensor'
import { type EnsembleGraph, type FindModel, modelOfStep } from './ensemble-graph.ts'
import type { EnsembleSpec } from './ensemble-spec.ts'

/** An output as protobuf JSON; of one that names no type, that of its tensor, or none while that is not known. */
export function inferOutput(o: {
  readonly graph: EnsembleGraph
  readonly output: EnsembleSpec['outputs'][number]
  readonly index: number
  readonly findModel: FindModel
}): { readonly name: string; readonly data_type?: string; readonly dims?: readonly number[] } {
  const { name, datatype, shape } = o.output
  if (datatype !== undefined && shape !== undefined) {
    return { name, data_type: DATATYPES[datatype].config, dims: shape }
  }
  const inferred = inferType(o.graph, o.index, o.findModel)
  return { name, ...inferred }
}

function inferType({ spec, outputs }: EnsembleGraph, index: number, findModel: FindModel) {
  const source = outputs[index]?.source
  if (source === undefined) return undefined
  if (source.kind === 'input') {
    const input = spec.inputs.find(({ name }) => name === source.name)
    return input && { data_type: DATATYPES[input.datatype].config, dims: input.shape }
  }
  const step = spec.steps[source.step]
  const config = step && findModel(modelOfStep(step))
  const made = config?.output.find(({ name }) => name === source.output)
  return config && made && { data_type: made.data_type, dims: dimsFor(spec, config, made) }
}

/** An ensemble without batches gives out the batch dimension of a model that has one. */
function dimsFor(spec: EnsembleSpec, config: ModelConfig, made: ModelInput | ModelOutput) {
  const isUnbatched = (spec.maxBatchSize ?? 0) === 0 && config.max_batch_size > 0
  return isUnbatched ? [-1, ...made.dims] : made.dims
}
