import { type Datatype, fromConfigDatatype, type Shape } from '@tutti/tensor'
import type { ModelConfig, ModelInput, ModelOutput } from '../model/model-config.ts'
import { ENSEMBLE_PLATFORM } from './select-backend.ts'

/** A tensor as metadata shows it: `shape` has a leading -1 if the model batches. */
export interface TensorMetadata {
  readonly name: string
  /** Datatype of the tensor; '<invalid>' if the configuration does not declare one. */
  readonly datatype: Datatype | '<invalid>'
  readonly shape: Shape
}

/** The answer to a metadata call of the v2 protocol. */
export interface ModelMetadata {
  readonly name: string
  readonly versions: readonly string[]
  readonly platform: string
  readonly inputs: readonly TensorMetadata[]
  readonly outputs: readonly TensorMetadata[]
}

/** Tells whether a configuration describes an ensemble. */
export function isEnsembleConfig(config: ModelConfig): boolean {
  return config.ensemble_scheduling !== undefined || config.platform === ENSEMBLE_PLATFORM
}

/** Tells whether a request of the model may have any number of responses. */
export function isDecoupled(config: ModelConfig): boolean {
  return config.model_transaction_policy?.decoupled === true
}

/** Builds the full declared shape of a tensor: `dims`, with a leading -1 if the model batches. */
export function fullDims(config: ModelConfig, dims: Shape): Shape {
  return config.max_batch_size > 0 ? [-1, ...dims] : dims
}

function toMetadata(config: ModelConfig, io: ModelInput | ModelOutput): TensorMetadata {
  return {
    name: io.name,
    datatype: fromConfigDatatype(io.data_type) ?? '<invalid>',
    shape: fullDims(config, io.dims),
  }
}

/**
 * Builds the metadata of a model that clients ask for.
 *
 * @param versions - the versions to name, in this order.
 */
export function modelMetadata(config: ModelConfig, versions: readonly number[]): ModelMetadata {
  return {
    name: config.name,
    versions: versions.map(String),
    platform: config.platform === '' ? config.backend : config.platform,
    inputs: config.input.map((io) => toMetadata(config, io)),
    outputs: config.output.map((io) => toMetadata(config, io)),
  }
}
