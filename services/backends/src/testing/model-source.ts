import {
  emptyModelConfig,
  type ModelConfig,
  type ModelInput,
  type ModelOutput,
  type ModelVersionSource,
} from '@tutti/model-config'
import { modelInput, modelOutput } from '@tutti/model-config/testing'
import { type ConfigDatatype, EMPTY_CONTEXT, type StepRequest } from '@tutti/tensor'

/** The declaration of an input or output in a test. */
export interface DeclaredTensor {
  readonly name: string
  readonly type: ConfigDatatype
  readonly dims: readonly number[]
  readonly optional?: boolean
  readonly reshape?: readonly number[]
}

function toInput({ name, type, dims, optional = false, reshape }: DeclaredTensor): ModelInput {
  const reshaped = reshape === undefined ? {} : { reshape: { shape: reshape } }
  return modelInput(name, type, dims, { ...reshaped, optional })
}

function toOutput({ name, type, dims, reshape }: DeclaredTensor): ModelOutput {
  return modelOutput(name, type, dims, reshape === undefined ? {} : { reshape: { shape: reshape } })
}

/** A configuration with proto defaults, as the step would hand it over. */
export function modelConfig(
  inputs: readonly DeclaredTensor[],
  outputs: readonly DeclaredTensor[],
  rest: Partial<ModelConfig> = {},
): ModelConfig {
  return {
    ...emptyModelConfig('m'),
    backend: 'onnxruntime',
    input: inputs.map(toInput),
    output: outputs.map(toOutput),
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
