import type { ModelConfig, ModelInput, ModelOutput } from '@tutti/model-config'

const KEYS = new WeakMap<ModelConfig, string>()

/**
 * Makes a key of a model's signature: inputs, outputs, `max_batch_size`, and whether the model is decoupled, because ensembles
 * are planned with it. A request may move between revisions of a model version only if their keys are equal. The order of
 * tensors does not count.
 */
export function signatureKey(config: ModelConfig): string {
  const known = KEYS.get(config)
  if (known !== undefined) return known
  const key = JSON.stringify([
    config.max_batch_size,
    config.model_transaction_policy?.decoupled ?? false,
    config.input.map(inputKey).toSorted(),
    config.output.map(outputKey).toSorted(),
  ])
  KEYS.set(config, key)
  return key
}

function inputKey(input: ModelInput): string {
  const { name, data_type: datatype, dims, reshape, optional } = input
  const { allow_ragged_batch: isRagged, is_shape_tensor: isShape } = input
  return JSON.stringify([name, datatype, dims, reshape?.shape ?? null, optional, isRagged, isShape])
}

function outputKey(output: ModelOutput): string {
  const { name, data_type: datatype, dims, reshape, is_shape_tensor: isShape } = output
  return JSON.stringify([name, datatype, dims, reshape?.shape ?? null, isShape])
}
