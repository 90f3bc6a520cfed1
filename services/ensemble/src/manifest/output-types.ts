import { DATATYPES } from '@tutti/tensor'
import { type EnsembleGraph, type FindModel, modelOfStep } from './ensemble-graph.ts'
import type { TensorSource } from './ensemble-references.ts'
import type { EnsembleSpec } from './ensemble-spec.ts'

/** The type of `outputs[index]` as protobuf JSON: its own, else that of its tensor; undefined while that is not known. */
export function inferOutput({ spec, outputs }: EnsembleGraph, index: number, findModel: FindModel) {
  const source = outputs[index]?.source
  const input = source?.kind === 'input' && spec.inputs.find(({ name }) => name === source.name)
  const { datatype, shape } = { ...input, ...spec.outputs[index] }
  if (datatype !== undefined) return { data_type: DATATYPES[datatype].config, dims: shape }
  return source?.kind === 'made' ? madeType(spec, source, findModel) : undefined
}

/** An ensemble without batches gives out the batch dimension of a model that has one. */
function madeType(
  spec: EnsembleSpec,
  { step: index, output }: Extract<TensorSource, { kind: 'made' }>,
  findModel: FindModel,
) {
  const step = spec.steps[index]
  const config = step && findModel(modelOfStep(step))
  const made = config?.output.find(({ name }) => name === output)
  const isUnbatched = (spec.maxBatchSize ?? 0) === 0 && (config?.max_batch_size ?? 0) > 0
  return made && { data_type: made.data_type, dims: isUnbatched ? [-1, ...made.dims] : made.dims }
}
