import {
  DATATYPES,
  type InferRequest,
  type NamedTensor,
  type Shape,
  type StepRequest,
} from '@tutti/tensor'
import type { ModelConfig } from '../model/model-config.ts'
import { countTexts, findBytesFault, MAX_TEXTS } from './bytes-check.ts'
import {
  batchFault,
  countFault,
  duplicateFault,
  firstTwin,
  inputFault,
  outputFault,
  textsFault,
} from './request-faults.ts'
import { compileRules, type InputRule, type RequestRules } from './request-rules.ts'
import { applyInputReshape } from './reshape.ts'

// The checks of every request, in Triton's order. A check only says whether there is a fault; `request-faults.ts` says which.

/** Number of inputs up to which comparing pairs is cheaper than a set. */
const FEW_INPUTS = 8

/** True if an input comes twice. It is asked before their number is checked. */
function hasDuplicate({ inputs }: InferRequest): boolean {
  if (inputs.length > FEW_INPUTS) return firstTwin(inputs) !== undefined
  for (let i = 1; i < inputs.length; i++) {
    for (let j = 0; j < i; j++) if (inputs[j]?.name === inputs[i]?.name) return true
  }
  return false
}

/** Finds the common first extent of a batching model's inputs; 0 for a model without batching; undefined for a fault. */
function findBatch(rules: RequestRules, { inputs }: InferRequest): number | undefined {
  const { max_batch_size: most } = rules.config
  if (most <= 0) return 0
  let batch: number | undefined
  for (const { name, shape } of inputs) {
    const [first] = shape
    if (first === undefined || !rules.inputs.has(name)) return undefined
    if (batch !== undefined && first !== batch) return undefined
    batch = first
  }
  if (batch === undefined) return 0
  return batch > most ? undefined : batch
}

/** Elements of a tensor whose shape the model takes, undefined for another shape. A batching model takes any first extent. */
function countElements({ config }: RequestRules, shape: Shape, { dims }: InputRule) {
  const offset = config.max_batch_size > 0 ? 1 : 0
  if (shape.length !== dims.length + offset) return undefined
  let count = 1
  for (let i = 0; i < shape.length; i++) {
    const extent = shape[i] ?? 0
    if (extent < 0 || !Number.isSafeInteger(extent)) return undefined
    const want = i < offset ? -1 : dims[i - offset]
    if (want !== -1 && want !== extent) return undefined
    count *= extent
  }
  return count
}

/** True if the bytes of all BYTES tensors are few enough to be looked at in one turn of the event loop. */
function hasFewTexts({ inputs }: InferRequest): boolean {
  let texts = 0
  for (const tensor of inputs) if (tensor.datatype === 'BYTES') texts += countTexts(tensor)
  return texts <= MAX_TEXTS
}

/** True if there are exactly the bytes that so many elements take. */
function fitsData({ name, data, datatype, shape }: NamedTensor, count: number): boolean {
  const { itemSize } = DATATYPES[datatype]
  if (itemSize !== null) return count * itemSize === data.byteLength
  return findBytesFault(data, shape, name, '') === undefined
}

/** Checks one input: datatype, shape, bytes. @returns the tensor as the model sees it. */
function checkInput(rules: RequestRules, request: InferRequest, tensor: NamedTensor): NamedTensor {
  const rule = rules.inputs.get(tensor.name)
  if (tensor.datatype !== rule?.datatype) throw inputFault(rules, request, tensor)
  const count = countElements(rules, tensor.shape, rule)
  if (count === undefined || !fitsData(tensor, count)) throw inputFault(rules, request, tensor)
  return rule.reshape === undefined ? tensor : applyInputReshape(rules.config, tensor, rule)
}

/**
 * Prepares the checks of one model, so that the check of a request costs little more than a look at its shapes.
 *
 * @returns a check, which returns or throws as `checkInferRequest` does.
 */
export function compileRequestCheck(config: ModelConfig): (request: InferRequest) => StepRequest {
  const rules = compileRules(config)
  return (request) => {
    if (hasDuplicate(request)) throw duplicateFault(rules, request)
    const { context, inputs, requestedOutputs: asked, retain } = request
    for (const name of asked) if (!rules.outputs.has(name)) throw outputFault(rules, name)
    const isCount = inputs.length >= rules.required && inputs.length <= config.input.length
    if (!isCount) throw countFault(rules, request)
    if (!hasFewTexts(request)) throw textsFault(rules, request)
    const batchSize = findBatch(rules, request)
    if (batchSize === undefined) throw batchFault(rules, request)
    const checked = {
      context,
      inputs: inputs.map((tensor) => checkInput(rules, request, tensor)),
      // Measured on 2.51: an output that is requested twice is answered once (triton-semantics 9.7).
      requestedOutputs: asked.length > 1 ? [...new Set(asked)] : asked,
      batchSize,
    }
    return retain === undefined ? checked : { ...checked, retain }
  }
}

const CHECKS = new WeakMap<ModelConfig, (request: InferRequest) => StepRequest>()

/**
 * Checks a request against a model's configuration, in Triton's order and with Triton's texts. The check is compiled at the
 * first use of a config object, and kept as long as that object lives.
 *
 * @returns the request as the model sees it: `reshape` is applied, and each requested output comes once. Data is viewed, not
 *   copied.
 * @throws ServeError INVALID_REQUEST, DATATYPE_MISMATCH, SHAPE_MISMATCH, INVALID_TENSOR_DATA, INCOMPLETE_STRING or
 *   MESSAGE_TOO_LARGE.
 */
export function checkInferRequest(config: ModelConfig, request: InferRequest): StepRequest {
  let check = CHECKS.get(config)
  if (check === undefined) {
    check = compileRequestCheck(config)
    CHECKS.set(config, check)
  }
  return check(request)
}
