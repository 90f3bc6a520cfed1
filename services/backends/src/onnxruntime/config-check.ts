import type { ModelConfig, ModelInput, ModelOutput } from '@tutti/model-config'
import { formatShape, fromConfigDatatype, type Shape, shapeMatches } from '@tutti/tensor'
import { refuseConfig } from '../config-fields.ts'
import type { OnnxPort, OnnxPorts } from '../onnx/model-ports.ts'

type Declared = ModelInput | ModelOutput

function checkCount(
  config: ModelConfig,
  kind: 'inputs' | 'outputs',
  declared: number,
  model: number,
): void {
  if (declared === model) return
  refuseConfig(
    kind === 'inputs' ? 'input' : 'output',
    `unable to load model '${config.name}', configuration expects ${declared} ${kind}, model provides ${model}`,
  )
}

function findPort(
  ports: readonly OnnxPort[],
  declared: Declared,
  kind: 'input' | 'output',
): OnnxPort {
  const port = ports.find(({ name }) => name === declared.name)
  if (port !== undefined) return port
  const allowed = ports.map(({ name }) => name).join(', ')
  return refuseConfig(
    kind,
    `unexpected inference ${kind} '${declared.name}', allowed ${kind}s are: ${allowed}`,
  )
}

function checkDatatype(
  config: ModelConfig,
  declared: Declared,
  port: OnnxPort,
  kind: 'input' | 'output',
): void {
  if (fromConfigDatatype(declared.data_type) === port.datatype) return
  const provided = `TYPE_${port.datatype === 'BYTES' ? 'STRING' : port.datatype}`
  refuseConfig(
    `${kind}.data_type`,
    `unable to load model '${config.name}', configuration expects datatype ${declared.data_type} for ${kind} '${declared.name}', model provides ${provided}`,
  )
}

/** True if a model's extents take every shape that the configuration allows. */
function accepts(model: Shape, declared: Shape): boolean {
  return (
    shapeMatches(model, declared) && model.every((extent, i) => extent === -1 || declared[i] !== -1)
  )
}

function checkBatching(config: ModelConfig, declared: Declared, model: Shape, dims: Shape): void {
  const prefix = `model '${config.name}', tensor '${declared.name}': `
  if (model[0] !== -1) {
    refuseConfig(
      'max_batch_size',
      `${prefix}for the model to support batching the shape should have at least 1 dimension and the first dimension must be -1; but shape expected by the model is ${formatShape(model)}`,
    )
  }
  const full = [-1, ...dims]
  if (accepts(model, full)) return
  refuseConfig(
    'dims',
    `${prefix}the model expects ${model.length} dimensions (shape ${formatShape(model)}) but the model configuration specifies ${full.length} dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape ${formatShape(full)})`,
  )
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
    refuseConfig(
      'dims',
      `model '${config.name}', tensor '${declared.name}': the model expects ${model.length} dimensions (shape ${formatShape(model)}) but the model configuration specifies ${dims.length} dimensions (shape ${formatShape(dims)})`,
    )
  }
}

function checkOptional(config: ModelConfig, declared: ModelInput, port: OnnxPort): void {
  if (!declared.optional || (port.optional && config.max_batch_size === 0)) return
  refuseConfig(
    'input.optional',
    `'optional' is set to true for input '${declared.name}' while the backend model doesn't support optional input`,
  )
}

/**
 * Holds a configuration against the model itself, with Triton's texts (triton-semantics 6.2).
 *
 * @param ports.inputs - the model's inputs; those with a default in the model are `optional` and need not be declared.
 * @throws ServeError MODEL_LOAD_FAILED, code INVALID_ARGUMENT.
 */
export function checkConfig(config: ModelConfig, ports: OnnxPorts): void {
  const required = ports.inputs.filter(({ optional }) => !optional)
  const optional = new Set(ports.inputs.filter((port) => port.optional).map(({ name }) => name))
  const declaredRequired = config.input.filter(({ name }) => !optional.has(name))
  checkCount(config, 'inputs', declaredRequired.length, required.length)
  for (const input of config.input) {
    const port = findPort(ports.inputs, input, 'input')
    checkOptional(config, input, port)
    checkDatatype(config, input, port, 'input')
    checkDims(config, input, port)
  }
  for (const output of config.output) {
    const port = findPort(ports.outputs, output, 'output')
    checkDatatype(config, output, port, 'output')
    checkDims(config, output, port)
  }
}
