import { type Reason, ServeError } from '@tutti/errors'
import {
  DATATYPES,
  type Datatype,
  elementCount,
  formatShape,
  fromConfigDatatype,
  type InferRequest,
  type NamedTensor,
  requestPrefix,
  type Shape,
  type StepRequest,
} from '@tutti/tensor'
import { findBytesFault } from './bytes-check.ts'
import type { ModelConfig } from './model-config.ts'
import { fullDims } from './model-metadata.ts'
import { carryExtents } from './output-reshape.ts'

/** What a model declares about one input. */
interface InputRule {
  readonly name: string
  readonly datatype: Datatype | undefined
  readonly dims: Shape
  /** The shape that the model sees instead of `dims`. */
  readonly reshape: Shape | undefined
  readonly optional: boolean
}

/** What a model declares, ready to be looked up. */
interface RequestRules {
  readonly config: ModelConfig
  readonly inputs: ReadonlyMap<string, InputRule>
  readonly outputs: ReadonlySet<string>
  readonly required: number
}

/** Gathers what the checks look up for every request of a model. */
function compileRules(config: ModelConfig): RequestRules {
  const inputs = config.input.map((io): [string, InputRule] => [
    io.name,
    {
      name: io.name,
      datatype: fromConfigDatatype(io.data_type),
      dims: io.dims,
      reshape: io.reshape?.shape,
      optional: io.optional,
    },
  ])
  return {
    config,
    inputs: new Map(inputs),
    outputs: new Set(config.output.map((io) => io.name)),
    required: config.input.filter((io) => !io.optional).length,
  }
}

/** Throws about a model's request; `field` is the tensor's name. */
function refuse(rules: RequestRules, reason: Reason, text: string, field?: string): never {
  const details = { model: rules.config.name, ...(field === undefined ? {} : { field }) }
  throw new ServeError(reason, text, { details })
}

/** Refuses with `[request id: R] ` before the text. */
function refuseRequest(
  rules: RequestRules,
  request: InferRequest,
  reason: Reason,
  o: { readonly text: string; readonly field?: string },
): never {
  return refuse(rules, reason, requestPrefix(request.context.id) + o.text, o.field)
}

/** The rule of an input by name; an unknown name is refused. */
function ruleOf(rules: RequestRules, name: string): InputRule {
  const rule = rules.inputs.get(name)
  if (rule !== undefined) return rule
  const text = `unexpected inference input '${name}' for model '${rules.config.name}'`
  return refuse(rules, 'INVALID_REQUEST', text, name)
}

const BATCH_NOTE =
  'NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to each input shape. If you want to specify the full shape including the batch dim in your input dims config, try setting max_batch_size to zero. See the model configuration docs for more info on max_batch_size.'

function checkDatatype(
  rules: RequestRules,
  request: InferRequest,
  tensor: NamedTensor,
  rule: InputRule,
): void {
  if (tensor.datatype === rule.datatype) return
  const want = rule.datatype ?? '<invalid>'
  refuseRequest(rules, request, 'DATATYPE_MISMATCH', {
    text: `inference input '${rule.name}' data-type is '${tensor.datatype}', but model '${rules.config.name}' expects '${want}'`,
    field: rule.name,
  })
}

function checkShape(
  rules: RequestRules,
  request: InferRequest,
  tensor: NamedTensor,
  rule: InputRule,
): void {
  const { config } = rules
  const { shape } = tensor
  const offset = config.max_batch_size > 0 ? 1 : 0
  let fits = shape.length === rule.dims.length + offset
  for (let i = 0; fits && i < shape.length; i++) {
    const extent = shape[i] ?? 0
    if (extent < 0 || !Number.isSafeInteger(extent)) {
      const text = `All input dimensions should be specified for input '${rule.name}' for model '${config.name}', got ${formatShape(shape)}`
      refuseRequest(rules, request, 'SHAPE_MISMATCH', { text, field: rule.name })
    }
    const want = i < offset ? -1 : rule.dims[i - offset]
    fits = want === -1 || want === extent
  }
  if (fits) return
  const want = formatShape(fullDims(config, rule.dims))
  const note = offset === 1 ? BATCH_NOTE : ''
  refuseRequest(rules, request, 'SHAPE_MISMATCH', {
    text: `unexpected shape for input '${rule.name}' for model '${config.name}'. Expected ${want}, got ${formatShape(shape)}. ${note}`,
    field: rule.name,
  })
}

function checkData(rules: RequestRules, request: InferRequest, tensor: NamedTensor): void {
  const { name, data, datatype } = tensor
  const model = rules.config.name
  const { itemSize } = DATATYPES[datatype]
  if (itemSize !== null) {
    if (elementCount(tensor.shape) * itemSize === data.byteLength) return
    // Exact where a double is not, because clients read this number.
    const wanted = tensor.shape.reduce((product, e) => product * BigInt(e), BigInt(itemSize))
    const text = `input byte size mismatch for input '${name}' for model '${model}'. Expected ${wanted}, got ${data.byteLength}`
    refuseRequest(rules, request, 'INVALID_TENSOR_DATA', { text, field: name })
  }
  const fault = findBytesFault(data, tensor.shape, name, model)
  if (fault === undefined) return
  if (!fault.isRequestFault) refuse(rules, 'INVALID_TENSOR_DATA', fault.text, name)
  refuseRequest(rules, request, 'INVALID_TENSOR_DATA', { text: fault.text, field: name })
}

/** The tensor in the shape that the model sees; itself where the configuration has no reshape. */
function applyReshape(rules: RequestRules, tensor: NamedTensor, rule: InputRule): NamedTensor {
  if (rule.reshape === undefined) return tensor
  const offset = rules.config.max_batch_size > 0 ? 1 : 0
  const item = carryExtents(rule.dims, tensor.shape.slice(offset), rule.reshape)
  return { ...tensor, shape: [...tensor.shape.slice(0, offset), ...item] }
}

/**
 * Checks one input: datatype, shape, bytes.
 *
 * @returns the tensor as the model sees it.
 * @throws ServeError DATATYPE_MISMATCH, SHAPE_MISMATCH or INVALID_TENSOR_DATA.
 */
function checkInputTensor(
  rules: RequestRules,
  request: InferRequest,
  tensor: NamedTensor,
): NamedTensor {
  const rule = ruleOf(rules, tensor.name)
  checkDatatype(rules, request, tensor, rule)
  checkShape(rules, request, tensor, rule)
  checkData(rules, request, tensor)
  return applyReshape(rules, tensor, rule)
}

function checkDuplicates(rules: RequestRules, request: InferRequest): void {
  const { inputs } = request
  // Few inputs: comparing pairs is cheaper than a set.
  for (let i = 1; i < inputs.length; i++) {
    const name = inputs[i]?.name ?? ''
    for (let j = 0; j < i; j++) {
      if (inputs[j]?.name !== name) continue
      const text = `input '${name}' already exists in request`
      refuseRequest(rules, request, 'INVALID_REQUEST', { text, field: name })
    }
  }
}

function checkOutputs(rules: RequestRules, request: InferRequest): readonly string[] {
  const requested = request.requestedOutputs
  for (const name of requested) {
    if (rules.outputs.has(name)) continue
    const text = `unexpected inference output '${name}' for model '${rules.config.name}'`
    refuse(rules, 'INVALID_REQUEST', text, name)
  }
  // Measured on 2.51: an output that is requested twice is answered once (triton-semantics 9.7).
  return requested.length > 1 ? [...new Set(requested)] : requested
}

function quoteNames(names: readonly string[]): string {
  return names.map((name) => `'${name}'`).join(',')
}

/** Only the number is checked, so an optional input can stand in for a missing one (triton-semantics 9.8). */
function checkCount(rules: RequestRules, request: InferRequest): void {
  const count = request.inputs.length
  const { config, required } = rules
  const declared = config.input.length
  if (count <= declared && count >= required) return
  const given = new Set(request.inputs.map((tensor) => tensor.name))
  const absent = config.input.filter((io) => !io.optional && !given.has(io.name))
  // Triton cuts the last character of its list, which is the bracket if nothing is missing.
  const missing = absent.length === 0 ? ']' : `[${quoteNames(absent.map((io) => io.name))}]`
  const expected =
    declared === required
      ? `expected ${declared} inputs`
      : `expected number of inputs between ${required} and ${declared}`
  refuseRequest(rules, request, 'INVALID_REQUEST', {
    text: `${expected} but got ${count} inputs for model '${config.name}'. Got input(s) [${quoteNames([...given])}], but missing required input(s) ${missing}. Please provide all required input(s).`,
  })
}

/** The common first extent of a batching model's inputs; 0 for a model without batching. */
function checkBatch(rules: RequestRules, request: InferRequest): number {
  const { name, max_batch_size } = rules.config
  if (max_batch_size <= 0) return 0
  let batchSize: number | undefined
  for (const tensor of request.inputs) {
    ruleOf(rules, tensor.name)
    const [first] = tensor.shape
    const field = tensor.name
    if (first === undefined) {
      const text = `input '${field}' has no shape but model requires batch dimension for '${name}'`
      refuseRequest(rules, request, 'SHAPE_MISMATCH', { text, field })
    }
    if (batchSize !== undefined && first !== batchSize) {
      const text = `input '${field}' batch size does not match other inputs for '${name}'`
      refuseRequest(rules, request, 'SHAPE_MISMATCH', { text, field })
    }
    batchSize = first
  }
  if (batchSize !== undefined && batchSize > max_batch_size) {
    const text = `inference request batch-size must be <= ${max_batch_size} for '${name}'`
    refuseRequest(rules, request, 'SHAPE_MISMATCH', { text })
  }
  return batchSize ?? 0
}

/**
 * Prepares the checks of one model, so that a request costs little more than a look at its shapes.
 *
 * @returns a check that returns the request as the model sees it, or throws like checkInferRequest.
 */
export function compileRequestCheck(config: ModelConfig): (request: InferRequest) => StepRequest {
  const rules = compileRules(config)
  return (request) => {
    checkDuplicates(rules, request)
    const requestedOutputs = checkOutputs(rules, request)
    checkCount(rules, request)
    const batchSize = checkBatch(rules, request)
    const inputs = request.inputs.map((tensor) => checkInputTensor(rules, request, tensor))
    return { context: request.context, inputs, requestedOutputs, batchSize }
  }
}

const CHECKS = new WeakMap<ModelConfig, (request: InferRequest) => StepRequest>()

/**
 * Checks a request against a model's configuration in Triton's order and with Triton's texts. The check is compiled on
 * the first use of a config object and kept as long as that object lives.
 *
 * @returns the request as the model sees it: `reshape` applied, requested outputs once each. Data is viewed, not copied.
 * @throws ServeError INVALID_REQUEST, DATATYPE_MISMATCH, SHAPE_MISMATCH or INVALID_TENSOR_DATA.
 */
export function checkInferRequest(config: ModelConfig, request: InferRequest): StepRequest {
  let check = CHECKS.get(config)
  if (check === undefined) {
    check = compileRequestCheck(config)
    CHECKS.set(config, check)
  }
  return check(request)
}
