import { ServeError } from '@tutti/errors'
import { DATATYPES, formatShape, type Shape } from '@tutti/tensor'
import type { ModelConfig, ModelInput, ModelOutput } from './model-config.ts'
import type { ModelSignature, TensorSpec } from './signature.ts'

type Side = 'input' | 'output'

function refuse(field: Side, text: string): never {
  throw new ServeError('CONFIG_INVALID', text, { details: { field } })
}

/** How many inputs the model must have: optional ones are initialisers, not inputs. */
function expectedInputs(config: ModelConfig): number {
  const declared = config.input.filter((io) => !io.optional).length
  const sequence = config.sequence_batching
  const controls = sequence?.control_input.flatMap((input) => input.control).length ?? 0
  return declared + config.batch_input.length + controls + (sequence?.state.length ?? 0)
}

function checkCount(config: ModelConfig, signature: ModelSignature): void {
  const expected = expectedInputs(config)
  const provided = signature.inputs.filter((spec) => !spec.optional).length
  if (expected === provided) return
  refuse(
    'input',
    `unable to load model '${config.name}', configuration expects ${expected} inputs, model provides ${provided}`,
  )
}

/** True if config dims fit the model's: its -1 takes any extent, unless the match must be exact. */
function fits(model: Shape, config: Shape, isExact: boolean): boolean {
  return (
    model.length === config.length &&
    model.every((extent, i) => (extent === -1 && !isExact) || extent === config[i])
  )
}

/** A tensor without dimensions can only be declared by ones. */
function checkScalar(config: ModelConfig, side: Side, name: string, dims: Shape): void {
  if (dims.every((extent) => extent === 1)) return
  refuse(
    side,
    `unable to load model '${config.name}', scalar tensor '${name}', should only provide 1 in the model configuration when the model doesn't support batching. Model configuration provided: ${formatShape(dims)}.`,
  )
}

function checkDims(config: ModelConfig, side: Side, spec: TensorSpec, dims: Shape): void {
  const model = `model '${config.name}', tensor '${spec.name}'`
  const isBatching = config.max_batch_size > 0
  if (spec.dims.length === 0 && !isBatching) return checkScalar(config, side, spec.name, dims)
  if (isBatching && spec.dims[0] !== -1) {
    refuse(
      side,
      `${model}: for the model to support batching the shape should have at least 1 dimension and the first dimension must be -1; but shape expected by the model is ${formatShape(spec.dims)}`,
    )
  }
  const full = isBatching ? [-1, ...dims] : dims
  if (fits(spec.dims, full, side === 'output')) return
  const specified = isBatching
    ? `(an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape ${formatShape(full)})`
    : `(shape ${formatShape(full)})`
  refuse(
    side,
    `${model}: the model expects ${spec.dims.length} dimensions (shape ${formatShape(spec.dims)}) but the model configuration specifies ${full.length} dimensions ${specified}`,
  )
}

function findSpec(side: Side, name: string, specs: readonly TensorSpec[]): TensorSpec {
  const spec = specs.find((candidate) => candidate.name === name)
  if (spec !== undefined) return spec
  const allowed = specs.map((candidate) => candidate.name).toSorted()
  return refuse(
    side,
    `unexpected inference ${side} '${name}', allowed ${side}s are: ${allowed.join(', ')}`,
  )
}

function checkDatatype(
  config: ModelConfig,
  side: Side,
  io: ModelInput | ModelOutput,
  spec: TensorSpec,
): void {
  const provided = DATATYPES[spec.datatype].config
  if (io.data_type === provided) return
  refuse(
    side,
    `unable to load model '${config.name}', configuration expects datatype ${io.data_type} for ${side} '${io.name}', model provides ${provided}`,
  )
}

function checkInput(config: ModelConfig, io: ModelInput, specs: readonly TensorSpec[]): void {
  const unable = `unable to load model '${config.name}'`
  if (io.optional && config.max_batch_size !== 0) {
    refuse(
      'input',
      `${unable}, optional input '${io.name}' is not supported for models that support batching`,
    )
  }
  const spec = findSpec('input', io.name, specs)
  if (io.optional && !spec.optional) {
    refuse(
      'input',
      `'optional' is set to true for input '${io.name}' while the backend model doesn't support optional input`,
    )
  }
  checkDatatype(config, 'input', io, spec)
  if (!io.allow_ragged_batch) {
    return checkDims(config, 'input', spec, io.reshape?.shape ?? io.dims)
  }
  const ragged = `${unable}, configuration expects model provides input with shape [-1]`
  if (io.optional) {
    refuse(
      'input',
      `${ragged} for ragged input '${io.name}', which is not supported for optional input`,
    )
  }
  if (spec.dims.length === 1 && spec.dims[0] === -1) return
  // Two blanks, as Triton prints it.
  refuse(
    'input',
    `${ragged}  for ragged input '${io.name}', model provides ${formatShape(spec.dims)}`,
  )
}

/**
 * Checks a configuration against what the model file itself declares, as Triton's ONNX Runtime backend does at load.
 *
 * @param signature - full shapes: a batching model's begin with -1.
 * @throws ServeError CONFIG_INVALID with Triton's text for the first mismatch.
 */
export function validateAgainstSignature(config: ModelConfig, signature: ModelSignature): void {
  checkCount(config, signature)
  for (const io of config.input) checkInput(config, io, signature.inputs)
  const scattered = new Set(config.batch_output.flatMap((io) => io.target_name))
  for (const io of config.output) {
    const spec = findSpec('output', io.name, signature.outputs)
    checkDatatype(config, 'output', io, spec)
    // What a batch output scatters need not have the model's shape.
    if (scattered.has(io.name)) continue
    checkDims(config, 'output', spec, io.reshape?.shape ?? io.dims)
  }
}
