import type { ModelConfig, ModelInput, ModelOutput } from '@tutti/model-config'
import { formatShape, fromConfigDatatype, type Shape, shapeMatches } from '@tutti/tensor'
import { refuseConfig } from '../config-fields.ts'
import type { OnnxPort, OnnxPorts } from '../onnx/model-ports.ts'

type Declared = ModelInput | ModelOutput

/** True if a model's extents take every shape that the configuration allows. */
function accepts(model: Shape, declared: Shape): boolean {
  return (
    shapeMatches(model, declared) && model.every((extent, i) => extent === -1 || declared[i] !== -1)
  )
}

function checkBatching(config: ModelConfig, declared: Declared, model: Shape, dims: Shape): void {
  const prefix = `model '${config.name}', tensor '${declared.name}': `
  if (model[0] !== -1) {
    const text = `${prefix}for the model to support batching the shape should have at least 1 dimension and the first dimension must be -1; but shape expected by the model is ${formatShape(model)}`
    refuseConfig('max_batch_size', text)
  }
  const full = [-1, ...dims]
  if (accepts(model, full)) return
  const text = `${prefix}the model expects ${model.length} dimensions (shape ${formatShape(model)}) but the model configuration specifies ${full.length} dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape ${formatShape(full)})`
  refuseConfig('dims', text)
}

/** True if the configuration writes a scalar of the model as `[1]`, the only way that it can. */
function isScalarAsVector(model: Shape, dims: Shape): boolean {
  return model.length === 0 && dims.length === 1 && dims[0] === 1
}

function checkDims(config: ModelConfig, declared: Declared, port: OnnxPort): void {
  const { dims: model } = port
  if (model === null) return
  const dims = declared.reshape?.shape ?? declared.dims
  if (config.max_batch_size > 0) checkBatching(config, declared, model, dims)
  else if (!accepts(model, dims) && !isScalarAsVector(model, dims)) {
    const text = `model '${config.name}', tensor '${declared.name}': the model expects ${model.length} dimensions (shape ${formatShape(model)}) but the model configuration specifies ${dims.length} dimensions (shape ${formatShape(dims)})`
    refuseConfig('dims', text)
  }
}

/** Finds the model's tensor of this name and datatype. */
function findPort(
  config: ModelConfig,
  kind: 'input' | 'output',
  { name, type }: { readonly name: string; readonly type: string },
  ports: readonly OnnxPort[],
): OnnxPort {
  const port = ports.find((one) => one.name === name)
  if (port === undefined) {
    const allowed = ports.map((one) => one.name).join(', ')
    refuseConfig(kind, `unexpected inference ${kind} '${name}', allowed ${kind}s are: ${allowed}`)
  }
  if (fromConfigDatatype(type) !== port.datatype) {
    const provided = `TYPE_${port.datatype === 'BYTES' ? 'STRING' : port.datatype}`
    const text = `unable to load model '${config.name}', configuration expects datatype ${type} for ${kind} '${name}', model provides ${provided}`
    refuseConfig(`${kind}.data_type`, text)
  }
  return port
}

function checkInput(config: ModelConfig, input: ModelInput, ports: readonly OnnxPort[]): void {
  const { name, data_type: type, optional, allow_ragged_batch: isRagged } = input
  const port = findPort(config, 'input', { name, type }, ports)
  if (optional && !(port.optional && config.max_batch_size === 0)) {
    const text = `'optional' is set to true for input '${name}' while the backend model doesn't support optional input`
    refuseConfig('input.optional', text)
  }
  if (!isRagged) return checkDims(config, input, port)
  const isVector = port.dims?.length === 1 && port.dims[0] === -1
  if (port.dims === null || isVector) return
  // Two spaces, as in Triton.
  const text = `unable to load model '${config.name}', configuration expects model provides input with shape [-1]  for ragged input '${name}', model provides ${formatShape(port.dims)}`
  refuseConfig('input.allow_ragged_batch', text)
}

function checkOutput(config: ModelConfig, output: ModelOutput, ports: readonly OnnxPort[]): void {
  const { name, data_type: type } = output
  const port = findPort(config, 'output', { name, type }, ports)
  const isScattered = config.batch_output.some(({ target_name: names }) => names.includes(name))
  if (!isScattered) return checkDims(config, output, port)
  if (type !== 'TYPE_STRING') return
  const text = `unable to load model '${config.name}', batch output '${name}' is TYPE_STRING, want a datatype of a fixed size`
  refuseConfig('batch_output', text)
}

/**
 * Checks a configuration against the model file, with Triton's texts (triton-semantics 6.2).
 *
 * @param ports.inputs - the model's inputs; those with a default in the model are `optional` and need not be declared.
 * @throws ServeError MODEL_LOAD_FAILED, code INVALID_ARGUMENT.
 */
export function checkConfig(config: ModelConfig, { inputs, outputs }: OnnxPorts): void {
  const optional = new Set(inputs.filter((port) => port.optional).map(({ name }) => name))
  const made = config.batch_input.flatMap(({ target_name: names, data_type: type }) =>
    names.map((name) => ({ name, type })),
  )
  const declared = config.input.filter(({ name }) => !optional.has(name)).length + made.length
  const required = inputs.length - optional.size
  if (declared !== required) {
    const text = `unable to load model '${config.name}', configuration expects ${declared} inputs, model provides ${required}`
    refuseConfig('input', text)
  }
  for (const input of config.input) checkInput(config, input, inputs)
  for (const target of made) findPort(config, 'input', target, inputs)
  for (const output of config.output) checkOutput(config, output, outputs)
}
