import { DATATYPES, elementCount, formatShape, type NamedTensor } from '@tutti/tensor'
import { findBytesFault } from './bytes-check.ts'
import { fullDims } from './model-metadata.ts'
import { carryExtents } from './output-reshape.ts'
import {
  type InferRequest,
  type InputRule,
  type RequestRules,
  refuse,
  refuseRequest,
  ruleOf,
} from './request-rules.ts'

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
export function checkInputTensor(
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
