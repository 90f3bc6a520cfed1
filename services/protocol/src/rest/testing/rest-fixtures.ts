import { ServeError } from '@tutti/errors'
import type { DataType, ModelConfig, ModelInput } from '@tutti/model-config'
import { decodeRestRequest, type RestInferRequest } from '../decode-request.ts'

/** A configuration of which only inputs and batching matter. */
export function modelConfig(inputs: readonly ModelInput[] = [], maxBatchSize = 0): ModelConfig {
  return {
    name: 'm',
    platform: '',
    backend: 'python',
    runtime: '',
    max_batch_size: maxBatchSize,
    input: inputs,
    output: [],
    batch_input: [],
    batch_output: [],
    instance_group: [],
    default_model_filename: '',
    cc_model_filenames: {},
    metric_tags: {},
    parameters: {},
    model_warmup: [],
  }
}

/** A declared input `in`. */
export function modelInput(dataType: DataType, dims: readonly number[]): ModelInput {
  return {
    name: 'in',
    data_type: dataType,
    format: 'FORMAT_NONE',
    dims,
    is_shape_tensor: false,
    allow_ragged_batch: false,
    optional: false,
    is_non_linear_format_io: false,
  }
}

/** Decodes a body that is all JSON, given as text so that numbers are as written. */
export function decodeText(text: string): RestInferRequest {
  return decodeRestRequest({ body: Buffer.from(text), modelName: 'm', config: modelConfig() })
}

/** The ServeError that `work` throws; anything else it throws goes on. */
export function failureOf(work: () => unknown): ServeError {
  try {
    work()
  } catch (error) {
    if (error instanceof ServeError) return error
    throw error
  }
  throw new Error('nothing was thrown')
}
