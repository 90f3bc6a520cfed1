import { ServeError } from '@tutti/errors'
import {
  DATATYPES,
  type Datatype,
  isDatatype,
  type NamedTensor,
  requestPrefix,
} from '@tutti/tensor'
import { MESSAGE_BOUNDS, tooManyEntries } from '../message-bounds.ts'
import { asCount, asSize, isObject, member, memberAsArray, memberAsString } from './json-fields.ts'
import { elementTexts, memberText } from './json-slice.ts'
import type { JsonDocument } from './json-text.ts'
import { decodePlace, type SharedPlace } from './shared-place.ts'
import { parseTensorData } from './tensor-data.ts'

/** Source of a request's inputs: the parsed document and the bytes that follow it. */
export interface RestDocument {
  readonly document: JsonDocument
  /** Id of the request, for error messages. */
  readonly id: string
  readonly modelName: string
  /** Bytes that follow the JSON part: the binary inputs in order. */
  readonly binary: Uint8Array
}

/** Input with its bytes, or with the place in shared memory that holds them. */
export interface RestInput extends NamedTensor {
  readonly place?: SharedPlace
}

const NOTHING = new Uint8Array(0)

/** The state that the inputs of one request share while they are read. */
interface Progress {
  /** Bytes of the binary part that inputs have taken. */
  offset: number
  /** The text of each input, cut on the first demand: a cut per input would read the whole document each time. */
  texts: readonly string[] | undefined
}

/**
 * Decodes the `inputs` member.
 *
 * @returns tensors in the request's order; binary ones are views into `source.binary`.
 * @throws ServeError with Triton's text; MESSAGE_TOO_LARGE beyond MESSAGE_BOUNDS.
 */
export function decodeInputs(source: RestDocument): readonly RestInput[] {
  const items = memberAsArray(source.document.value, 'inputs')
  if (items.length > MESSAGE_BOUNDS.inputs) throw tooManyEntries('inputs')
  const progress: Progress = { offset: 0, texts: undefined }
  const seen = new Set<string>()
  const inputs = items.map((item, index) => {
    const input = decodeInput(source, item, index, progress)
    if (seen.has(input.name)) {
      throw new ServeError(
        'INVALID_REQUEST',
        `${requestPrefix(source.id)}input '${input.name}' already exists in request`,
      )
    }
    seen.add(input.name)
    return input
  })
  if (progress.offset !== source.binary.byteLength) {
    throw new ServeError(
      'INVALID_REQUEST',
      `unexpected additional input data for model '${source.modelName}': got ${source.binary.byteLength} bytes after the JSON, want ${progress.offset}`,
    )
  }
  return inputs
}

function decodeInput(
  source: RestDocument,
  item: unknown,
  index: number,
  progress: Progress,
): RestInput {
  refuseUnclearContent(item)
  const name = memberAsString(item, 'name')
  const datatype = decodeDatatype(name, memberAsString(item, 'datatype'))
  const extents = memberAsArray(item, 'shape')
  if (extents.length > MESSAGE_BOUNDS.rank) throw tooManyEntries('rank')
  const shape = extents.map((extent) => decodeExtent(name, extent))
  const parameters = member(item, 'parameters')
  const binarySize = member(parameters, 'binary_data_size')
  if (binarySize !== undefined) {
    const size = asCount(binarySize, "Unable to parse 'binary_data_size'")
    return { name, datatype, shape, data: takeBinary(source, name, size, progress) }
  }
  const place = decodePlace(parameters)
  if (place !== undefined) return { name, datatype, shape, data: NOTHING, place }
  // Triton reads no data of a tensor without elements, or without a shape.
  const isShapeless = shape.length === 0 && !Array.isArray(member(item, 'data'))
  if (isShapeless || shape.includes(0)) return { name, datatype, shape, data: NOTHING }
  const data = parseTensorData({
    name,
    datatype,
    shape,
    data: memberAsArray(item, 'data'),
    hasNames: source.document.hasNames,
    dataText: () => dataText(source.document, progress, index),
  })
  return { name, datatype, shape, data }
}

function decodeExtent(name: string, extent: unknown): number {
  if (Number.isInteger(extent) && Number(extent) > Number.MAX_SAFE_INTEGER) {
    // Its last digits are lost already, so it is not printed.
    throw new ServeError(
      'INVALID_REQUEST',
      `shape of input '${name}' has an extent that is too large, want 0 to 2^53 - 1`,
      { details: { field: `${name}.shape` } },
    )
  }
  return asSize(extent, "Unable to parse 'shape'")
}

function decodeDatatype(name: string, text: string): Datatype {
  if (isDatatype(text)) return text
  throw new ServeError(
    'INVALID_REQUEST',
    `invalid datatype for input ${name}: got '${text}', want one of ${Object.keys(DATATYPES).join(', ')}`,
    { details: { field: name } },
  )
}

function takeBinary(
  source: RestDocument,
  name: string,
  size: number,
  progress: Progress,
): Uint8Array {
  const left = source.binary.byteLength - progress.offset
  if (size > left) {
    throw new ServeError(
      'INVALID_REQUEST',
      `unexpected size for input '${name}', expecting ${size - left} additional bytes for model '${source.modelName}'`,
      { details: { field: name } },
    )
  }
  const start = progress.offset
  progress.offset += size
  return source.binary.subarray(start, progress.offset)
}

function dataText({ text }: JsonDocument, progress: Progress, index: number): string {
  progress.texts ??= elementTexts(memberText(text, 'inputs') ?? '[]') ?? []
  return memberText(progress.texts[index] ?? '{}', 'data') ?? '[]'
}

/** Refuses an item with more than one of the three ways of giving an input's data. */
function refuseUnclearContent(item: unknown): void {
  const parameters = member(item, 'parameters')
  const given = { ...(isObject(parameters) && parameters), data: member(item, 'data') }
  const set = ['data', 'binary_data_size', 'shared_memory_region']
    .filter((name) => member(given, name) !== undefined)
    .map((name) => ` '${name}'`)
  if (set.length === 1) return
  throw new ServeError(
    'INVALID_REQUEST',
    "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', " +
      `'shared_memory_region' in 'parameters'. But${set.length === 0 ? ' no field is set' : ` set${set.join('')}`}`,
  )
}
