import { ServeError } from '@tutti/errors'
import type {
  BatchInput,
  BatchOutput,
  ModelConfig,
  ModelInput,
  ModelOutput,
} from '../model/model-config.ts'

const TENSORRT_PLATFORM = 'tensorrt_plan'

/** Throws CONFIG_INVALID about `field`. */
function refuse(field: 'input' | 'output' | 'batch_input' | 'batch_output', text: string): never {
  throw new ServeError('CONFIG_INVALID', text, { details: { field } })
}

function isExtent(extent: number): boolean {
  return extent >= 1 || extent === -1
}

/** Lists the element counts of the runs between variable-size dimensions: [2,4,-1,6] has 8 and 6. */
function runSizes(dims: readonly number[]): number[] {
  const sizes = [1]
  for (const extent of dims) {
    if (extent === -1) sizes.push(1)
    else sizes.push((sizes.pop() ?? 1) * extent)
  }
  return sizes
}

/** Finds what is wrong with a reshape, if anything. An empty one stands for a scalar per batch item. */
function reshapeFault(dims: readonly number[], shape: readonly number[]): string | undefined {
  const wanted = runSizes(dims)
  const given = runSizes(shape)
  if (wanted.length > 1 !== given.length > 1) return 'has different size for dims and reshape'
  if (wanted.length !== given.length) {
    return 'has different number of variable-size dimensions for dims and reshape'
  }
  const isSame = wanted.every((size, i) => size === given[i])
  return isSame ? undefined : 'has different size for dims and reshape'
}

/** Finds the first rule that a tensor's name, type, dims or reshape breaks. */
function shapeFault(io: ModelInput | ModelOutput, maxBatchSize: number): string | undefined {
  const variable = 'must be integer >= 1, or -1 to indicate a variable-size dimension'
  const { name, dims, reshape } = io
  if (name === '') return "must specify 'name'"
  if (io.data_type === 'TYPE_INVALID') return `'${name}' must specify 'data_type'`
  if (dims.length === 0) return `'${name}' must specify 'dims'`
  if (reshape?.shape.length === 0 && maxBatchSize === 0) {
    return `'${name}' cannot have empty reshape for non-batching model as scalar tensors are not supported`
  }
  if (!dims.every(isExtent)) return `'${name}' dimension ${variable}`
  if (reshape === undefined) return undefined
  if (!reshape.shape.every(isExtent)) return `'${name}' reshape dimensions ${variable}`
  const fault = reshapeFault(dims, reshape.shape)
  return fault === undefined ? undefined : `'${name}' ${fault}`
}

/** Formats of TensorRT, which are another engine's to check. */
function formatFault(io: ModelInput | ModelOutput, platform: string): string | undefined {
  if (platform === TENSORRT_PLATFORM) return undefined
  if (io.is_shape_tensor) return 'shape tensors are only supported for TensorRT platform'
  return io.is_non_linear_format_io
    ? 'Non-linear IO format is only supported for the TensorRT platform'
    : undefined
}

function inputFault(io: ModelInput, config: ModelConfig): string | undefined {
  const fault = shapeFault(io, config.max_batch_size)
  if (fault !== undefined) return `model input ${fault}`
  if (io.format !== 'FORMAT_NONE' && io.dims.length !== 3) {
    return 'model input NHWC/NCHW require 3 dims'
  }
  return formatFault(io, config.platform)
}

function outputFault(io: ModelOutput, config: ModelConfig): string | undefined {
  const fault = shapeFault(io, config.max_batch_size)
  return fault === undefined ? formatFault(io, config.platform) : `model output ${fault}`
}

/** Finds the first rule that the sources of a batch input or output break. */
function sourceFault(
  what: 'input' | 'output',
  { kind, source_input: sources }: BatchInput | BatchOutput,
  config: ModelConfig,
): string | undefined {
  if (sources.length !== 1) {
    return `batch ${what} kind '${kind}' expects 1 source input, got ${sources.length}`
  }
  const unknown = sources.find((source) => !config.input.some(({ name }) => name === source))
  return unknown === undefined ? undefined : `unknown source input name '${unknown}'`
}

function batchInputFault(one: BatchInput, config: ModelConfig): string | undefined {
  const { data_type: type, source_input: sources } = one
  const isNumber = type === 'TYPE_INT32' || type === 'TYPE_FP32'
  // Triton counts the sources before it looks at the type, and looks for them after it.
  return isNumber || sources.length !== 1
    ? sourceFault('input', one, config)
    : 'batch input data type must be TYPE_INT32 or TYPE_FP32'
}

function batchOutputFault(one: BatchOutput, config: ModelConfig): string | undefined {
  const { target_name: targets } = one
  const fault = sourceFault('output', one, config)
  if (fault !== undefined) return fault
  // Triton crashes.
  if (targets.length === 0) return "must specify 'target_name' of a batch output"
  const unknown = targets.find((target) => !config.output.some(({ name }) => name === target))
  if (unknown !== undefined) return `unknown target output name '${unknown}'`
  const again = targets.find((target, i) => targets.indexOf(target) < i)
  return again === undefined
    ? undefined
    : `target output name '${again}' can only be specified once`
}

/**
 * Checks the declared inputs and outputs, and the batch inputs and batch outputs.
 *
 * @throws ServeError CONFIG_INVALID with Triton's text for the first rule that is broken.
 */
export function validateTensors(config: ModelConfig): void {
  for (const io of config.input) {
    const fault = inputFault(io, config)
    if (fault !== undefined) refuse('input', `${fault} for ${config.name}`)
  }
  for (const io of config.output) {
    const fault = outputFault(io, config)
    if (fault !== undefined) refuse('output', `${fault} for ${config.name}`)
  }
  for (const one of config.batch_input) {
    if (one.data_type === 'TYPE_INVALID') {
      refuse('batch_input', `unexpected batch input data type '${one.data_type}'`)
    }
    const fault = batchInputFault(one, config)
    if (fault !== undefined) refuse('batch_input', `${fault} for ${config.name}`)
  }
  for (const one of config.batch_output) {
    const fault = batchOutputFault(one, config)
    if (fault !== undefined) refuse('batch_output', `${fault} for ${config.name}`)
  }
}
