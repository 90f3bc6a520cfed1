import type { StepRequest } from '@tutti/tensor'
import { checkInputTensor } from './check-input-tensor.ts'
import type { ModelConfig } from './model-config.ts'
import {
  compileRules,
  type InferRequest,
  type RequestRules,
  refuse,
  refuseRequest,
  ruleOf,
} from './request-rules.ts'

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
