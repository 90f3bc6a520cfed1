import type { ModelConfig, ModelInput, ModelOutput, ModelVersionSource } from '@tutti/model-config'
import { type ConfigDatatype, EMPTY_CONTEXT, type StepRequest } from '@tutti/tensor'

/** What a test says of a declared input or output. */
export interface DeclaredTensor {
  readonly name: string
  readonly type: ConfigDatatype
  readonly dims: readonly number[]
  readonly optional?: boolean
  readonly reshape?: readonly number[]
}

function declare(tensor: DeclaredTensor): ModelInput & ModelOutput {
  return {
    name: tensor.name,
    data_type: tensor.type,
    format: 'FORMAT_NONE',
    dims: tensor.dims,
    ...(tensor.reshape === undefined ? {} : { reshape: { shape: tensor.reshape } }),
    is_shape_tensor: false,
    allow_ragged_batch: false,
    optional: tensor.optional ?? false,
    is_non_linear_format_io: false,
    label_filename: '',
  }
}

/** A configuration with proto defaults, as the step would hand it over. */
export function modelConfig(
  inputs: readonly DeclaredTensor[],
  outputs: readonly DeclaredTensor[],
  rest: Partial<ModelConfig> = {},
): ModelConfig {
  return {
    name: 'm',
    platform: '',
    backend: 'onnxruntime',
    runtime: '',
    max_batch_size: 0,
    input: inputs.map(declare),
    output: outputs.map(declare),
    batch_input: [],
    batch_output: [],
    instance_group: [],
    default_model_filename: '',
    cc_model_filenames: {},
    metric_tags: {},
    parameters: {},
    model_warmup: [],
    ...rest,
  }
}

/** A version source for a model that lies in `directory` itself. */
export function modelSource(directory: string, config: ModelConfig): ModelVersionSource {
  return {
    name: config.name,
    version: 1,
    modelDirectory: directory,
    versionDirectory: directory,
    revision: '0',
    config,
  }
}

/** A request without id and parameters. */
export function stepRequest(
  inputs: StepRequest['inputs'],
  rest: Partial<StepRequest> = {},
): StepRequest {
  return { context: EMPTY_CONTEXT, inputs, requestedOutputs: [], batchSize: 0, ...rest }
}
