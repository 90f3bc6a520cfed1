import { Signature } from '@tutti/api'
import { isDecoupled, type ModelConfig } from '@tutti/model-config'
import { fromConfigDatatype } from '@tutti/tensor'

type Tensor = Pick<ModelConfig['output'][number], 'name' | 'data_type' | 'dims'>

/**
 * Builds the signature for a status: inputs and outputs as clients see them. It is undefined if it breaks the status's schema.
 */
export function toStatusSignature(config: ModelConfig): Signature | undefined {
  const { data } = Signature.safeParse({
    maxBatchSize: config.max_batch_size,
    decoupled: isDecoupled(config),
    inputs: config.input.map((input) => ({
      ...toTensor(input),
      ...(input.optional && { optional: true }),
    })),
    outputs: config.output.map(toTensor),
  })
  return data
}

function toTensor({ name, data_type: datatype, dims }: Tensor) {
  return { name, datatype: fromConfigDatatype(datatype), shape: dims }
}
