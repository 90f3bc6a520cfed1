import { ServeError } from '@tutti/errors'
import {
  DATATYPES,
  type Datatype,
  elementCount,
  encodeBytesTensor,
  sizeOfField,
  WIRE_BYTES,
  WireWriter,
} from '@tutti/tensor'
import { fromElementType } from './element-type.ts'
import {
  type Field,
  joinBytes,
  readBigints,
  readFields,
  readInteger,
  readIntegers,
  readText,
  refuseModel,
  requireMessage,
  toModelError,
} from './model-fields.ts'
import { GRAPH, MODEL, TENSOR } from './model-proto.ts'

/** A default value that stood in the model. `data` is in the v2 layout, a copy. */
export interface DefaultTensor {
  readonly name: string
  readonly datatype: Datatype
  readonly dims: readonly number[]
  readonly data: Uint8Array
}

interface TensorDraft {
  name: string
  elementType: number
  isExternal: boolean
  raw: Uint8Array | undefined
  readonly dims: number[]
  /** int32_data, int64_data and uint64_data. */
  readonly integers: bigint[]
  /** float_data and double_data, as they are stored. */
  readonly floats: Uint8Array[]
  readonly strings: Uint8Array[]
}

const EXTERNAL = 1

const READERS: Readonly<Record<number, (draft: TensorDraft, field: Field) => unknown>> = {
  [TENSOR.DIMS]: (draft, field) => draft.dims.push(...readIntegers(field, 'a dimension')),
  [TENSOR.DATA_TYPE]: (draft, field) => (draft.elementType = readInteger(field, 'element type')),
  [TENSOR.NAME]: (draft, field) => (draft.name = readText(field, 'an initializer name')),
  [TENSOR.RAW_DATA]: (draft, field) => (draft.raw = field.bytes),
  [TENSOR.FLOAT_DATA]: (draft, field) => draft.floats.push(field.bytes),
  [TENSOR.DOUBLE_DATA]: (draft, field) => draft.floats.push(field.bytes),
  [TENSOR.INT32_DATA]: readElements,
  [TENSOR.INT64_DATA]: readElements,
  [TENSOR.UINT64_DATA]: readElements,
  [TENSOR.STRING_DATA]: (draft, field) =>
    draft.strings.push(requireMessage(field, 'an element').bytes),
  [TENSOR.DATA_LOCATION]: (draft, field) =>
    (draft.isExternal = readInteger(field, 'data location') === EXTERNAL),
}

function readElements(draft: TensorDraft, field: Field): void {
  draft.integers.push(...readBigints(field, 'an element'))
}

/** The low bytes of each value. */
function packIntegers(values: readonly bigint[], itemSize: number): Uint8Array {
  const whole = new Uint8Array(BigInt64Array.from(values).buffer)
  return joinBytes(values.map((_, i) => whole.subarray(i * 8, i * 8 + itemSize)))
}

function tensorData(draft: TensorDraft, datatype: Datatype): Uint8Array {
  const { itemSize } = DATATYPES[datatype]
  if (itemSize === null) return encodeBytesTensor(draft.strings)
  // Not slice(): of a Buffer that is a view.
  if (draft.raw !== undefined) return new Uint8Array(draft.raw)
  if (draft.floats.length > 0) return joinBytes(draft.floats)
  return packIntegers(draft.integers, itemSize)
}

/** Reads a TensorProto as a default value. */
function readDefault(bytes: Uint8Array): DefaultTensor {
  const draft: TensorDraft = {
    name: '',
    elementType: 0,
    isExternal: false,
    raw: undefined,
    dims: [],
    integers: [],
    floats: [],
    strings: [],
  }
  for (const field of readFields(bytes)) READERS[field.field]?.(draft, field)
  const { name, dims } = draft
  const datatype = fromElementType(draft.elementType)
  if (draft.isExternal || datatype === undefined) {
    throw new ServeError(
      'MODEL_LOAD_FAILED',
      `the default of optional input '${name}' cannot be read: ${draft.isExternal ? 'it is external data' : `element type ${draft.elementType}`}`,
    )
  }
  const data = tensorData(draft, datatype)
  const { itemSize } = DATATYPES[datatype]
  const got = itemSize === null ? draft.strings.length : data.byteLength / itemSize
  if (got !== elementCount(dims)) {
    refuseModel(`default of input '${name}': ${got} elements, want ${elementCount(dims)}`)
  }
  return { name, datatype, dims, data }
}

function initializerName(bytes: Uint8Array): string {
  for (const field of readFields(bytes)) {
    if (field.field === TENSOR.NAME) return readText(field, 'an initializer name')
  }
  return ''
}

function cutInitializers(
  graph: Uint8Array,
  names: ReadonlySet<string>,
  defaults: DefaultTensor[],
): Uint8Array {
  const parts: Uint8Array[] = []
  for (const field of readFields(graph)) {
    if (field.field === GRAPH.INITIALIZER && names.has(initializerName(field.bytes))) {
      defaults.push(readDefault(field.bytes))
    } else parts.push(field.raw)
  }
  return joinBytes(parts)
}

function graphField(graph: Uint8Array): Uint8Array {
  const writer = new WireWriter(sizeOfField(graph.byteLength))
  writer.field(MODEL.GRAPH * 8 + WIRE_BYTES, graph)
  return writer.bytes
}

/**
 * Makes initializer-backed inputs true inputs: their initializers are cut out of the graph and returned as defaults, which
 * the caller feeds when a request leaves the input out. The binding lists only inputs without an initializer and ignores
 * the others when they are fed, so without this a request's value would be dropped silently.
 *
 * @param model - a whole ModelProto; viewed.
 * @returns the new model (a copy) and the defaults of `names`, in the model's order.
 * @throws ServeError MODEL_LOAD_FAILED if a default is absent, sparse, external or of a type not offered.
 */
export function openInputs(
  model: Uint8Array,
  names: ReadonlySet<string>,
): { model: Uint8Array<ArrayBuffer>; defaults: readonly DefaultTensor[] } {
  try {
    return cutDefaults(model, names)
  } catch (error) {
    throw toModelError(error)
  }
}

function cutDefaults(model: Uint8Array, names: ReadonlySet<string>): ReturnType<typeof openInputs> {
  const defaults: DefaultTensor[] = []
  const parts: Uint8Array[] = []
  for (const field of readFields(model)) {
    if (field.field !== MODEL.GRAPH) parts.push(field.raw)
    else parts.push(graphField(cutInitializers(field.bytes, names, defaults)))
  }
  const found = new Set(defaults.map((tensor) => tensor.name))
  for (const name of names) {
    if (!found.has(name)) refuseModel(`optional input '${name}' has no default that can be read`)
  }
  return { model: joinBytes(parts), defaults }
}
