import { type Reason, ServeError } from '@tutti/errors'
import {
  DATATYPES,
  formatShape,
  type InferRequest,
  type NamedTensor,
  requestPrefix,
} from '@tutti/tensor'
import { fullDims } from '../complete/model-metadata.ts'
import { findBytesFault, MAX_TEXTS } from './bytes-check.ts'
import type { InputRule, RequestRules } from './request-rules.ts'

/*
 * The faults of a request that a check has refused, in Triton's words. Of several inputs that are wrong the last is told, because
 * Triton's hash table gives them, as long as they are few, from the last to the first.
 */

const BATCH_NOTE =
  'NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to each input shape. If you want to specify the full shape including the batch dim in your input dims config, try setting max_batch_size to zero. See the model configuration docs for more info on max_batch_size.'

interface Fault {
  readonly reason: Reason
  readonly text: string
  /** The tensor's name. */
  readonly field?: string
}

function toError({ config }: RequestRules, { reason, text, field }: Fault): ServeError {
  const details = { model: config.name, ...(field !== undefined && { field }) }
  return new ServeError(reason, text, { details })
}

/** Makes the error of a request's fault, with `[request id: R] ` before the text. */
function toRequestError(rules: RequestRules, request: InferRequest, fault: Fault): ServeError {
  return toError(rules, { ...fault, text: requestPrefix(request.context.id) + fault.text })
}

/** Finds the first input whose name already came before, and returns the name. */
export function firstTwin(inputs: readonly Pick<NamedTensor, 'name'>[]): string | undefined {
  const seen = new Set<string>()
  for (const { name } of inputs) {
    if (seen.has(name)) return name
    seen.add(name)
  }
  return undefined
}

export function duplicateFault(rules: RequestRules, request: InferRequest): ServeError {
  const field = firstTwin(request.inputs) ?? ''
  const text = `input '${field}' already exists in request`
  return toRequestError(rules, request, { reason: 'INVALID_REQUEST', text, field })
}

export function outputFault(rules: RequestRules, field: string): ServeError {
  const text = `unexpected inference output '${field}' for model '${rules.config.name}'`
  return toError(rules, { reason: 'INVALID_REQUEST', text, field })
}

function unknownInput(rules: RequestRules, field: string): ServeError {
  const text = `unexpected inference input '${field}' for model '${rules.config.name}'`
  return toError(rules, { reason: 'INVALID_REQUEST', text, field })
}

/** Characters of a list of names in an error, but for those of its last name: a request may have thousands of long ones. */
const LISTED_CHARACTERS = 4096

function quoteNames(names: readonly string[]): string {
  let text = ''
  for (const name of names) {
    if (text.length > LISTED_CHARACTERS) return `${text},...`
    text += text === '' ? `'${name}'` : `,'${name}'`
  }
  return text
}

/**
 * Builds the error for a wrong number of inputs. Only the number is checked, so an optional input can stand in for a missing
 * one (triton-semantics 9.8).
 */
export function countFault(rules: RequestRules, request: InferRequest): ServeError {
  const { config, required } = rules
  const declared = config.input.length
  const given = new Set(request.inputs.map((tensor) => tensor.name))
  const absent = config.input.filter((io) => !io.optional && !given.has(io.name))
  // Triton cuts the last character of its list, which is the bracket if nothing is missing.
  const missing = absent.length === 0 ? ']' : `[${quoteNames(absent.map((io) => io.name))}]`
  const expected =
    declared === required
      ? `expected ${declared} inputs`
      : `expected number of inputs between ${required} and ${declared}`
  const text = `${expected} but got ${request.inputs.length} inputs for model '${config.name}'. Got input(s) [${quoteNames([...given])}], but missing required input(s) ${missing}. Please provide all required input(s).`
  return toRequestError(rules, request, { reason: 'INVALID_REQUEST', text })
}

export function batchFault(rules: RequestRules, request: InferRequest): ServeError {
  const { name, max_batch_size } = rules.config
  const refuse = (text: string, field?: string): ServeError =>
    toRequestError(rules, request, {
      reason: 'SHAPE_MISMATCH',
      text,
      ...(field !== undefined && { field }),
    })
  const inputs = request.inputs.toReversed()
  const batch = inputs[0]?.shape[0]
  for (const { name: field, shape } of inputs) {
    if (!rules.inputs.has(field)) return unknownInput(rules, field)
    const [first] = shape
    if (first === undefined) {
      const text = `input '${field}' has no shape but model requires batch dimension for '${name}'`
      return refuse(text, field)
    }
    if (first !== batch) {
      return refuse(`input '${field}' batch size does not match other inputs for '${name}'`, field)
    }
  }
  return refuse(`inference request batch-size must be <= ${max_batch_size} for '${name}'`)
}

/** Builds the error for a request with more than MAX_TEXTS string elements. Triton has no such bound. */
export function textsFault(rules: RequestRules, request: InferRequest): ServeError {
  const text = `inputs of inference request for model '${rules.config.name}' have more than ${MAX_TEXTS} string elements`
  return toRequestError(rules, request, { reason: 'MESSAGE_TOO_LARGE', text })
}

/**
 * Builds the error for an input with a wrong datatype, shape or byte size. If several inputs are wrong, it is about the last
 * one.
 *
 * @param found - an input with a fault; there may be more.
 */
export function inputFault(
  rules: RequestRules,
  request: InferRequest,
  found: NamedTensor,
): ServeError {
  const faults = request.inputs.flatMap((tensor) => faultOf(rules, request, tensor) ?? [])
  return faults.at(-1) ?? unknownInput(rules, found.name)
}

function faultOf(
  rules: RequestRules,
  request: InferRequest,
  tensor: NamedTensor,
): ServeError | undefined {
  const { name: field, datatype } = tensor
  const rule = rules.inputs.get(field)
  if (rule === undefined) return unknownInput(rules, field)
  if (datatype !== rule.datatype) {
    const want = rule.datatype ?? '<invalid>'
    const text = `inference input '${field}' data-type is '${datatype}', but model '${rules.config.name}' expects '${want}'`
    return toRequestError(rules, request, { reason: 'DATATYPE_MISMATCH', text, field })
  }
  const text = shapeFault(rules, tensor, rule)
  if (text === undefined) return dataFault(rules, request, tensor)
  return toRequestError(rules, request, { reason: 'SHAPE_MISMATCH', text, field })
}

function shapeFault(
  { config }: RequestRules,
  { name, shape }: NamedTensor,
  { dims }: InputRule,
): string | undefined {
  const want = fullDims(config, dims)
  const isRank = shape.length === want.length
  const wrong = shape.findIndex((extent, i) => {
    if (extent < 0 || !Number.isSafeInteger(extent)) return true
    return want[i] !== -1 && want[i] !== extent
  })
  if (isRank && wrong === -1) return undefined
  const extent = isRank ? (shape[wrong] ?? 0) : 0
  const subject = `for input '${name}' for model '${config.name}'`
  // Any other number is just not the one that a fixed dimension has.
  if (extent === -1 || (want[wrong] === -1 && isRank)) {
    return `All input dimensions should be specified ${subject}, got ${formatShape(shape)}`
  }
  const note = config.max_batch_size > 0 ? BATCH_NOTE : ''
  return `unexpected shape ${subject}. Expected ${formatShape(want)}, got ${formatShape(shape)}. ${note}`
}

function dataFault(
  rules: RequestRules,
  request: InferRequest,
  tensor: NamedTensor,
): ServeError | undefined {
  const { name: field, data, shape, datatype } = tensor
  const model = rules.config.name
  const { itemSize } = DATATYPES[datatype]
  if (itemSize !== null) {
    // Exact where a double is not, because clients read this number.
    const wanted = shape.reduce((product, e) => product * BigInt(e), BigInt(itemSize))
    if (wanted === BigInt(data.byteLength)) return undefined
    const text = `input byte size mismatch for input '${field}' for model '${model}'. Expected ${wanted}, got ${data.byteLength}`
    return toRequestError(rules, request, { reason: 'INVALID_TENSOR_DATA', text, field })
  }
  const found = findBytesFault(data, shape, field, model)
  if (found === undefined) return undefined
  const { text } = found
  return found.isRequestFault
    ? toRequestError(rules, request, { reason: 'INVALID_TENSOR_DATA', text, field })
    : toError(rules, { reason: 'INCOMPLETE_STRING', text, field })
}
