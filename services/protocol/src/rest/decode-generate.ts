import { ServeError } from '@tutti/errors'
import {
  type Datatype,
  EMPTY_CONTEXT,
  elementCount,
  type NamedTensor,
  type Parameter,
  type RequestContext,
  requestPrefix,
  type Shape,
} from '@tutti/tensor'
import { MESSAGE_BOUNDS, ParameterBudget, tooManyEntries } from '../message-bounds.ts'
import { WrittenNumber } from './exact-numbers.ts'
import { asString, isObject, jsonTypeError, tooBig, withinBound } from './json-fields.ts'
import { memberTexts } from './json-slice.ts'
import { type JsonDocument, parseJson, parsePart } from './json-text.ts'
import { isTooBig, textBytes, toCustomParameter } from './request-parameters.ts'
import { parseTensorData } from './tensor-data.ts'

/** Input from the metadata of a model; -1 for an extent that the request decides. */
export interface DeclaredInput {
  readonly name: string
  readonly datatype: Datatype | '<invalid>'
  readonly shape: Shape
}

/** Request decoded from a body of `generate`. It wants all outputs. */
export interface GenerateRequest {
  readonly context: RequestContext
  readonly inputs: readonly NamedTensor[]
}

const NESTED = 'parameters'

interface Draft extends Pick<JsonDocument, 'hasNames'> {
  readonly declared: ReadonlyMap<string, DeclaredInput>
  readonly inputs: Map<string, NamedTensor>
  readonly parameters: Map<string, Parameter>
  readonly budget: ParameterBudget
  members: number
  id: string
}

/**
 * Decodes the body of `generate` and `generate_stream`. A member with the name of an input becomes that input's tensor. Members
 * of `parameters` are read like those beside it. All others become custom parameters, even those with a meaning in `infer`, as in
 * Triton 2.51.
 *
 * @param declared - the inputs of the model.
 * @throws ServeError with Triton's text; MESSAGE_TOO_LARGE beyond MESSAGE_BOUNDS.
 */
export function decodeGenerateRequest(
  body: Uint8Array,
  declared: readonly DeclaredInput[],
): GenerateRequest {
  const { text, value, hasNames } = parseJson(body)
  if (!isObject(value)) {
    throw new ServeError('MALFORMED_MESSAGE', 'attempt to get members for non-object', {
      code: 'INTERNAL',
    })
  }
  const draft: Draft = {
    hasNames,
    declared: new Map(declared.map((input) => [input.name, input])),
    inputs: new Map(),
    parameters: new Map(),
    budget: new ParameterBudget(),
    members: 0,
    id: Object.hasOwn(value, 'id') ? asString(value['id'], "Unable to parse 'id'") : '',
  }
  for (const [key, written] of memberTexts(text)) {
    if (key === NESTED) readNested(written, draft)
    else readMember(key, written, draft)
  }
  const { id, parameters } = draft
  return { context: { ...EMPTY_CONTEXT, id, parameters }, inputs: [...draft.inputs.values()] }
}

function readNested(written: string, draft: Draft): void {
  if (!written.startsWith('{')) {
    throw jsonTypeError(
      `Expected JSON object for keyword: '${NESTED}'`,
      'attempt to access JSON non-object as object',
    )
  }
  try {
    for (const [key, text] of memberTexts(written)) readMember(key, text, draft)
  } catch (cause) {
    const { reason, code, message, details } = ServeError.from(cause)
    const text = `Converting keyword: '${NESTED}': ${message}`
    throw new ServeError(reason, text, { code, details, cause })
  }
}

function readMember(key: string, written: string, draft: Draft): void {
  draft.members += 1
  // Those that come twice too: each takes time.
  if (draft.members > MESSAGE_BOUNDS.parameters) throw tooManyEntries('parameters')
  const input = draft.declared.get(key)
  if (input === undefined) {
    if (draft.parameters.has(withinBound(key))) return
    const value = toValue(written, draft)
    draft.budget.take(textBytes(key, value))
    draft.parameters.set(key, toCustomParameter(key, value))
    return
  }
  if (draft.inputs.has(key)) {
    const text = `${requestPrefix(draft.id)}input '${key}' already exists in request`
    throw new ServeError('INVALID_REQUEST', text)
  }
  draft.inputs.set(key, toTensor(input, written, draft))
}

/** Converts a scalar, with a number as it was written. Objects and arrays are wrong in any case. */
function toValue(written: string, draft: Draft): unknown {
  if (written.startsWith('{') || written.startsWith('[')) return undefined
  const value = parsePart(draft, written)
  if (isTooBig(value) && !draft.hasNames) throw tooBig()
  return typeof value === 'number' ? new WrittenNumber(written) : value
}

function toTensor(
  { name, datatype, shape: dims }: DeclaredInput,
  written: string,
  { hasNames }: Draft,
): NamedTensor {
  if (datatype === '<invalid>') {
    throw new ServeError('INVALID_REQUEST', `input '${name}' has no datatype`)
  }
  const value = parsePart({ hasNames }, written)
  const data = Array.isArray(value) ? value : [value]
  const shape = fitShape(dims, data.length)
  if (shape === undefined) {
    const text = `The schema can not convert input '${name}' to tensor with proper shape`
    throw new ServeError('INVALID_REQUEST', text, { details: { field: name } })
  }
  return {
    name,
    datatype,
    shape,
    data: parseTensorData({ name, datatype, shape, data, hasNames, dataText: () => written }),
  }
}

/** Gives all elements to the last open dimension; the others are 1. Undefined if that is not possible. */
function fitShape(dims: Shape, elements: number): Shape | undefined {
  const fixed = elementCount(dims.filter((extent) => extent >= 0))
  const open = dims.lastIndexOf(-1)
  const extent = elements / fixed
  if (open < 0 ? extent !== 1 : !Number.isInteger(extent)) return undefined
  return dims.map((dim, index) => (dim >= 0 ? dim : index === open ? extent : 1))
}
