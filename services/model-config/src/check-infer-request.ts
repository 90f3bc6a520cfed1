import {
  DATATYPES,
  elementCount,
  type InferRequest,
  type NamedTensor,
  type Shape,
  type StepRequest,
} from '@tutti/tensor'
import { findBytesFault } from './bytes-check.ts'
import type { ModelConfig } from './model-config.ts'
import { carryExtents } from './output-reshape.ts'
import {
  batchFault,
  countFault,
  duplicateFault,
  inputFault,
  outputFault,
} from './request-faults.ts'
import { compileRules, type InputRule, type RequestRules } from './request-rules.ts'

/*
 * The checks of every request, in Triton's order. A check only says whether there is a fault; `request-faults.ts` says which.
 */

/** True if an input comes twice. */
function hasDuplicate({ inputs }: InferRequest): boolean {
  // Few inputs: comparing pairs is cheaper than a set.
  for (let i = 1; i < inputs.length; i++) {
    for (let j = 0; j < i; j++) if (inputs[j]?.name === inputs[i]?.name) return true
  }
  return false
}

/** The common first extent of a batching model's inputs; 0 for a model without batching; undefined for a fault. */
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

/** A batching model takes any first extent. */
function fitsShape({ config }: RequestRules, shape: Shape, { dims }: InputRule): boolean {
  const offset = config.max_batch_size > 0 ? 1 : 0
  if (shape.length !== dims.length + offset) return false
  for (let i = 0; i < shape.length; i++) {
    const extent = shape[i] ?? 0
    if (extent < 0 || !Number.isSafeInteger(extent)) return false
    const want = i < offset ? -1 : dims[i - offset]
    if (want !== -1 && want !== extent) return false
  }
  return true
}

/** True if there are exactly the bytes that datatype and shape want. */
function fitsData({ name, data, datatype, shape }: NamedTensor): boolean {
  const { itemSize } = DATATYPES[datatype]
  if (itemSize !== null) return elementCount(shape) * itemSize === data.byteLength
  return findBytesFault(data, shape, name, '') === undefined
}

/** The tensor in the shape that the model sees. */
function applyReshape(rules: RequestRules, tensor: NamedTensor, dims: Shape, to: Shape) {
  const offset = rules.config.max_batch_size > 0 ? 1 : 0
  const item = carryExtents(dims, tensor.shape.slice(offset), to)
  return { ...tensor, shape: [...tensor.shape.slice(0, offset), ...item] }
}

/** Checks one input: datatype, shape, bytes. @returns the tensor as the model sees it. */
function checkInput(rules: RequestRules, request: InferRequest, tensor: NamedTensor): NamedTensor {
  const rule = rules.inputs.get(tensor.name)
  const fits =
    rule !== undefined &&
    tensor.datatype === rule.datatype &&
    fitsShape(rules, tensor.shape, rule) &&
    fitsData(tensor)
  if (!fits) throw inputFault(rules, request, tensor)
  const { dims, reshape } = rule
  return reshape === undefined ? tensor : applyReshape(rules, tensor, dims, reshape)
}

/**
 * Prepares the checks of one model, so that a request costs little more than a look at its shapes.
 *
 * @returns a check that returns the request as the model sees it, or throws like checkInferRequest.
 */
export function compileRequestCheck(config: ModelConfig): (request: InferRequest) => StepRequest {
  const rules = compileRules(config)
  return (request) => {
    if (hasDuplicate(request)) throw duplicateFault(rules, request)
    const { context, inputs, requestedOutputs: asked, retain } = request
    for (const name of asked) if (!rules.outputs.has(name)) throw outputFault(rules, name)
    const isCount = inputs.length >= rules.required && inputs.length <= config.input.length
    if (!isCount) throw countFault(rules, request)
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
