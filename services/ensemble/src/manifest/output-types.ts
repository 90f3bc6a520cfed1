import type { ModelConfig, ModelOutput } from '@tutti/model-config'
import { DATATYPES } from '@tutti/tensor'
import { type EnsembleGraph, type FindModel, modelOfStep } from './ensemble-graph.ts'
import type { EnsembleSpec } from './ensemble-spec.ts'

/** What `outputs[index]` is, as protobuf JSON; of one that names no type, that of its tensor, or none while that is not known. */
export function inferOutput({ spec, outputs }: EnsembleGraph, index: number, findModel: FindModel) {
  const { datatype, shape } = spec.outputs[index] ?? {}
  if (datatype !== undefined) return { data_type: DATATYPES[datatype].config, dims: shape }
  const source = outputs[index]?.source
  if (source?.kind !== 'made') {
    const input = spec.inputs.find(({ name }) => name === source?.name)
    return input && { data_type: DATATYPES[input.datatype].config, dims: input.shape }
  }
  const step = spec.steps[source.step]
  const config = step && findModel(modelOfStep(step))
  const made = config?.output.find(({ name }) => name === source.output)
  return config && made && { data_type: made.data_type, dims: dimsFor(spec, config, made) }
}

/** An ensemble without batches gives out the batch dimension of a model that has one. */
function dimsFor(spec: EnsembleSpec, config: ModelConfig, made: ModelOutput) {
  const isUnbatched = (spec.maxBatchSize ?? 0) === 0 && config.max_batch_size > 0
  return isUnbatched ? [-1, ...made.dims] : made.dims
}
