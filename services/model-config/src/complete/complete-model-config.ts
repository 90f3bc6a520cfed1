import { ServeError } from '@tutti/errors'
import { declareInput, declareOutput } from '../model/declare-tensor.ts'
import type { ModelConfig, ModelInput, ModelOutput } from '../model/model-config.ts'
import { emptyModelConfig } from '../text/parse-model-config.ts'
import { ENSEMBLE_PLATFORM, selectBackend } from './select-backend.ts'
import type { ModelSignature, TensorSpec } from './signature.ts'

/** Triton's `--backend-config=default-max-batch-size`. */
const DEFAULT_MAX_BATCH_SIZE = 4

/** The inputs and outputs that an engine read from the model file, and whether the model can batch. */
export interface InspectedModel extends ModelSignature {
  /** True if the first dimension of every input and output is -1. */
  readonly batchable: boolean
}

export interface CompletionInput {
  /** Configuration as parsed; undefined if the model has no config.pbtxt. */
  readonly config: ModelConfig | undefined
  readonly directoryName: string
  /** Path of the config.pbtxt, for the details of errors. */
  readonly configPath: string
  /** Names of the files in the first version directory. */
  readonly versionFiles: readonly string[]
  /** Inputs and outputs of the model file; absent if the backend's model files do not declare them. */
  readonly inspect?: InspectedModel
  readonly autoComplete: boolean
  /** Largest batch of a model that can batch and sets no max_batch_size, in items. Default: 4. */
  readonly defaultMaxBatchSize?: number
}

/** Completes batch size and scheduler by what the model itself can do. */
function completeBatching(
  config: ModelConfig,
  batchable: boolean,
  defaultMaxBatchSize: number,
): ModelConfig {
  if (!batchable) {
    if (config.max_batch_size === 0) return config
    const text = `autofill failed for model '${config.name}': model does not support batching while non-zero max_batch_size is specified`
    throw new ServeError('CONFIG_INVALID', text)
  }
  const sized =
    config.max_batch_size === 0
      ? { ...config, max_batch_size: Math.max(defaultMaxBatchSize, 0) }
      : config
  const hasScheduler =
    sized.dynamic_batching !== undefined ||
    sized.sequence_batching !== undefined ||
    sized.ensemble_scheduling !== undefined
  if (sized.max_batch_size <= 1 || hasScheduler) return sized
  return {
    ...sized,
    dynamic_batching: {
      preferred_batch_size: [],
      max_queue_delay_microseconds: 0,
      preserve_ordering: false,
      priority_levels: 0,
      default_priority_level: 0,
      priority_queue_policy: {},
    },
  }
}

/** Takes the batch dimension away. A scalar per batch item is written as dims [1] with an empty reshape. */
function perItem({ name, datatype, dims: all }: TensorSpec, isBatching: boolean) {
  const dims = isBatching ? all.slice(1) : all
  const isScalar = dims.length === 0
  return {
    declaration: { name, datatype, dims: isScalar ? [1] : dims },
    reshape: isScalar && isBatching ? { reshape: { shape: [] } } : {},
  }
}

function toInput(spec: TensorSpec, isBatching: boolean): ModelInput {
  const { declaration, reshape } = perItem(spec, isBatching)
  return { ...declareInput(declaration), ...reshape }
}

function toOutput(spec: TensorSpec, isBatching: boolean): ModelOutput {
  const { declaration, reshape } = perItem(spec, isBatching)
  return { ...declareOutput(declaration), ...reshape }
}

/** Inputs and outputs that the configuration leaves out altogether. */
function completeTensors(config: ModelConfig, inspect: InspectedModel): ModelConfig {
  const isBatching = config.max_batch_size > 0
  const { control_input: controls = [], state = [] } = config.sequence_batching ?? {}
  const made = config.batch_input.flatMap((one) => one.target_name)
  // Tensors that the scheduler gives and takes are not the client's.
  const given = new Set([
    ...controls.map((c) => c.name),
    ...state.map((s) => s.input_name),
    ...made,
  ])
  const taken = new Set(state.map((s) => s.output_name))
  const inputs = inspect.inputs.filter(({ name }) => !given.has(name))
  const outputs = inspect.outputs.filter(({ name }) => !taken.has(name))
  return {
    ...config,
    input: config.input.length > 0 ? config.input : inputs.map((s) => toInput(s, isBatching)),
    output: config.output.length > 0 ? config.output : outputs.map((s) => toOutput(s, isBatching)),
  }
}

/**
 * Completes a configuration as Triton does: name, backend, platform and model file always; batching, inputs and outputs
 * from the model itself if auto-completion is on and the configuration lacks inputs or outputs.
 *
 * @throws ServeError CONFIG_MISSING without a configuration while auto-completion is off; CONFIG_INVALID if no backend
 * can be found, or if max_batch_size is set for a model that cannot batch.
 */
export function completeModelConfig(input: CompletionInput): ModelConfig {
  const { directoryName, inspect } = input
  if (input.config === undefined && !input.autoComplete) {
    throw new ServeError(
      'CONFIG_MISSING',
      `model configuration is not provided for model '${directoryName}'`,
      { details: { model: directoryName, field: input.configPath } },
    )
  }
  const given = input.config ?? emptyModelConfig()
  const choice = selectBackend(given, directoryName, input.versionFiles)
  const config = {
    ...given,
    name: given.name === '' ? directoryName : given.name,
    backend: choice.backend,
    platform: choice.platform,
    default_model_filename: choice.modelFilename,
  }
  const isDeclared = config.input.length > 0 && config.output.length > 0
  const isEnsemble = config.platform === ENSEMBLE_PLATFORM
  if (!input.autoComplete || inspect === undefined || isDeclared || isEnsemble) return config
  const batching = completeBatching(
    config,
    inspect.batchable,
    input.defaultMaxBatchSize ?? DEFAULT_MAX_BATCH_SIZE,
  )
  return completeTensors(batching, inspect)
}
