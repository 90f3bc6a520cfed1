import { ONNX_FIELDS } from '@tutti/builtins'
import { ServeError } from '@tutti/errors'
import { WIRE_BYTES, WIRE_FIXED32, WIRE_FIXED64, WIRE_VARINT, WireReader } from '@tutti/formats'
import { type ByteSource, memorySource, openFileSource } from './byte-source.ts'

const { DIM, GRAPH, MODEL, SHAPE, SPARSE_TENSOR, TENSOR, TENSOR_TYPE, TYPE, VALUE_INFO } =
  ONNX_FIELDS

/** One input or output as the model file declares it. */
export interface OnnxValue {
  readonly name: string
  /** Kind of the value: `tensor`, `sequence`, `map`, `optional`, `sparse tensor`, `opaque` or `none`. */
  readonly kind: string
  /** Element type, a TensorProto.DataType; 0 if the value is not a tensor. */
  readonly elementType: number
  /** Extents: -1 for a symbolic or unknown one, [] for a scalar; null if not even the rank is declared. */
  readonly dims: readonly number[] | null
}

/** Inputs and outputs of a model file. */
export interface OnnxInterface {
  /** Inputs that have no default. A default is an initializer of the same name. */
  readonly inputs: readonly OnnxValue[]
  /** Inputs that have a default which is not sparse. */
  readonly overridable: readonly OnnxValue[]
  readonly outputs: readonly OnnxValue[]
}

/** Place of a field's value in the file. */
interface Place {
  readonly field: number
  readonly start: number
  readonly end: number
}

/** The longest header of a field: a tag and a length, ten bytes each. */
const MAX_HEADER_BYTES = 20
/** Most bytes of a value info or a name. A longer one is hostile: names and shapes are short. */
const MAX_ENTRY_BYTES = 1024 * 1024

/** @throws ServeError MODEL_LOAD_FAILED with `problem`. */
function refuseModel(problem: string, cause?: unknown): never {
  throw new ServeError('MODEL_LOAD_FAILED', `not a valid ONNX model: ${problem}`, { cause })
}

/** Returns the bytes of a value after its header. */
function valueBytes(reader: WireReader, wire: number): number {
  if (wire === WIRE_BYTES) return reader.length()
  if (wire === WIRE_VARINT) reader.varint()
  else if (wire === WIRE_FIXED64) return 8
  else if (wire === WIRE_FIXED32) return 4
  else refuseModel(`wire type ${wire}, want 0, 1, 2 or 5`)
  return 0
}

/** Walks the fields of a message in the file. */
async function* walk(source: ByteSource, start: number, end: number): AsyncGenerator<Place> {
  for (let offset = start; offset < end; ) {
    const bytes = await source.read(offset, Math.min(MAX_HEADER_BYTES, end - offset))
    const reader = new WireReader(bytes)
    const tag = reader.tag()
    const size = valueBytes(reader, tag & 7)
    const from = offset + reader.position
    offset = from + size
    if (offset > end) {
      refuseModel(`field ${tag >>> 3} passes the end of its message by ${offset - end} bytes`)
    }
    yield { field: tag >>> 3, start: from, end: offset }
  }
}

/** Reads the bytes of a field. They are valid until the next read. */
async function readEntry(source: ByteSource, { start, end }: Place, what: string) {
  const size = end - start
  if (size > MAX_ENTRY_BYTES) refuseModel(`${what} has ${size} bytes, want ${MAX_ENTRY_BYTES}`)
  return new WireReader(await source.read(start, size))
}

type Fields = Readonly<Record<number, (reader: WireReader) => unknown>>

/** Reads a message by what is done with a field of bytes, texts or messages; all others are skipped. */
function readMessage(reader: WireReader, fields: Fields, numbers: Fields = {}): void {
  while (reader.hasMore()) {
    const tag = reader.tag()
    const known = (tag & 7) === WIRE_BYTES ? fields : (tag & 7) === WIRE_VARINT ? numbers : {}
    const read = known[tag >>> 3]
    if (read === undefined) reader.skip(tag)
    else read(reader)
  }
}

function readNested(reader: WireReader, fields: Fields, numbers?: Fields): void {
  const outer = reader.enter()
  readMessage(reader, fields, numbers)
  reader.leave(outer)
}

function readDim(reader: WireReader): number {
  let dim = -1
  readNested(reader, {}, { [DIM.VALUE]: () => (dim = reader.int64()) })
  // ONNX Runtime treats a negative value as unknown too.
  return dim < 0 ? -1 : dim
}

type ValueType = Omit<OnnxValue, 'name'>

function readTensorType(reader: WireReader): ValueType {
  let elementType = 0
  let dims: number[] | null = null
  const readShape = (): void => {
    const shape: number[] = []
    readNested(reader, { [SHAPE.DIM]: () => shape.push(readDim(reader)) })
    dims = shape
  }
  const readElementType = (): unknown => (elementType = reader.int64())
  readNested(
    reader,
    { [TENSOR_TYPE.SHAPE]: readShape },
    { [TENSOR_TYPE.ELEMENT_TYPE]: readElementType },
  )
  return { kind: 'tensor', elementType, dims }
}

const NO_TYPE: ValueType = { kind: 'none', elementType: 0, dims: null }
const OTHER_KINDS: Readonly<Record<number, string>> = {
  [TYPE.SEQUENCE]: 'sequence',
  [TYPE.MAP]: 'map',
  [TYPE.OPAQUE]: 'opaque',
  [TYPE.SPARSE]: 'sparse tensor',
  [TYPE.OPTIONAL]: 'optional',
}

function readType(reader: WireReader): ValueType {
  let type = NO_TYPE
  const outer = reader.enter()
  while (reader.hasMore()) {
    const tag = reader.tag()
    const kind = OTHER_KINDS[tag >>> 3]
    if (tag === TYPE.TENSOR * 8 + WIRE_BYTES) type = readTensorType(reader)
    else reader.skip(tag)
    if (kind !== undefined) type = { ...NO_TYPE, kind }
  }
  reader.leave(outer)
  return type
}

async function readValueInfo(source: ByteSource, place: Place, what: string): Promise<OnnxValue> {
  const reader = await readEntry(source, place, what)
  let name = ''
  let type = NO_TYPE
  readMessage(reader, {
    [VALUE_INFO.NAME]: () => (name = reader.text(Number.POSITIVE_INFINITY)),
    [VALUE_INFO.TYPE]: () => (type = readType(reader)),
  })
  if (name === '') refuseModel(`${what} has no name`)
  return { name, ...type }
}

/** Finds the name of an initializer, or of the tensor that `within` leads to. */
async function findName(source: ByteSource, place: Place, within?: number): Promise<string> {
  let name = ''
  for await (const part of walk(source, place.start, place.end)) {
    if (part.field === within) name = await findName(source, part)
    else if (within === undefined && part.field === TENSOR.NAME) {
      name = (await readEntry(source, part, 'an initializer name')).bytes.toString()
    }
  }
  return name
}

async function readGraph(source: ByteSource, graph: Place): Promise<OnnxInterface> {
  const inputs: OnnxValue[] = []
  const outputs: OnnxValue[] = []
  const defaults = new Set<string>()
  const sparse = new Set<string>()
  for await (const part of walk(source, graph.start, graph.end)) {
    if (part.field === GRAPH.INPUT) inputs.push(await readValueInfo(source, part, 'an input'))
    else if (part.field === GRAPH.OUTPUT) {
      outputs.push(await readValueInfo(source, part, 'an output'))
    } else if (part.field === GRAPH.INITIALIZER) defaults.add(await findName(source, part))
    else if (part.field === GRAPH.SPARSE_INITIALIZER) {
      sparse.add(await findName(source, part, SPARSE_TENSOR.VALUES))
    }
  }
  const required = inputs.filter(({ name }) => !defaults.has(name) && !sparse.has(name))
  const overridable = inputs.filter(({ name }) => defaults.has(name))
  return { inputs: required, overridable, outputs }
}

async function readModel(source: ByteSource): Promise<OnnxInterface> {
  let model: OnnxInterface | undefined
  for await (const part of walk(source, 0, source.size)) {
    if (part.field === MODEL.GRAPH) model = await readGraph(source, part)
  }
  return model ?? refuseModel('it has no graph')
}

function refuseDuplicates(values: readonly OnnxValue[], what: string): void {
  const names = values.map(({ name }) => name)
  const twice = names.find((name, i) => names.indexOf(name) !== i)
  if (twice !== undefined) refuseModel(`two ${what}s are named '${twice}'`)
}

/**
 * Reads the inputs and outputs of an ONNX model without its weights. A file is read in windows of 64 KiB, and parts without
 * interest are skipped.
 *
 * @param model - the path of a .onnx file, or its bytes (viewed, not kept).
 * @throws ServeError MODEL_LOAD_FAILED if the file cannot be read or is not a model.
 * @see onnx.proto, ModelProto and GraphProto
 */
export async function inspectOnnx(model: string | Uint8Array): Promise<OnnxInterface> {
  const source = typeof model === 'string' ? await openFileSource(model) : memorySource(model)
  try {
    const found = await readModel(source)
    if (found.outputs.length === 0) refuseModel('its graph has no outputs')
    refuseDuplicates(found.inputs, 'input')
    refuseDuplicates(found.outputs, 'output')
    return found
  } catch (error) {
    const { reason, message } = ServeError.from(error)
    if (reason === 'MODEL_LOAD_FAILED') throw error
    if (reason === 'MALFORMED_MESSAGE') return refuseModel(message, error)
    throw new ServeError('MODEL_LOAD_FAILED', 'the model file cannot be read', { cause: error })
  } finally {
    await source.close()
  }
}
