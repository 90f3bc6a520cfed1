import { WireReader } from '@tutti/tensor'
import { type ByteSource, memorySource, openFileSource } from './byte-source.ts'
import {
  type Field,
  type FieldHeader,
  MAX_HEADER_BYTES,
  readFields,
  readHeader,
  readInteger,
  readText,
  refuseModel,
  requireMessage,
  toModelError,
} from './model-fields.ts'
import {
  DIM,
  GRAPH,
  MODEL,
  SHAPE,
  SPARSE_TENSOR,
  TENSOR,
  TENSOR_TYPE,
  TYPE,
  VALUE_INFO,
} from './model-proto.ts'

/** One input or output as the model file declares it. */
export interface OnnxValue {
  readonly name: string
  /** `tensor`, or what else it is: `sequence`, `map`, `optional`, `sparse tensor`, `opaque`, `none`. */
  readonly kind: string
  /** TensorProto.DataType; 0 if it is not a tensor. */
  readonly elementType: number
  /** -1 for a symbolic or unknown extent, [] for a scalar; null if not even the rank is declared. */
  readonly dims: readonly number[] | null
}

/** What stands in a model file beside its nodes and weights. */
export interface OnnxModel {
  readonly irVersion: number
  /** Real inputs: initializer-backed ones are in `overridable`, or nowhere if IR version < 4 makes them constants. */
  readonly inputs: readonly OnnxValue[]
  /** Inputs with a default value (an initializer of the same name): what a caller may leave out. */
  readonly overridable: readonly OnnxValue[]
  readonly outputs: readonly OnnxValue[]
}

/** A value info beyond this is hostile: names and shapes are short. */
const MAX_ENTRY_BYTES = 1024 * 1024
const FIRST_IR_WITH_OVERRIDABLE = 4

interface Draft {
  irVersion: number
  hasGraph: boolean
  readonly inputs: OnnxValue[]
  readonly outputs: OnnxValue[]
  readonly initializers: Set<string>
}

async function* walk(source: ByteSource, start: number, end: number): AsyncGenerator<FieldHeader> {
  let offset = start
  while (offset < end) {
    const bytes = await source.read(offset, Math.min(MAX_HEADER_BYTES, end - offset))
    const header = readHeader(new WireReader(bytes), end - offset)
    const at = { ...header, start: offset + header.start, end: offset + header.end }
    yield at
    offset = at.end
  }
}

async function readEntry(source: ByteSource, header: FieldHeader, what: string): Promise<Field> {
  const size = requireMessage(header, what).end - header.start
  if (size > MAX_ENTRY_BYTES) refuseModel(`${what} has ${size} bytes, want ${MAX_ENTRY_BYTES}`)
  // A copy, because the window moves on; not slice(), which of a Buffer is a view.
  const bytes = new Uint8Array(await source.read(header.start, size))
  return { ...header, bytes, raw: bytes }
}

const KINDS = new Map<number, string>([
  [TYPE.TENSOR, 'tensor'],
  [TYPE.SEQUENCE, 'sequence'],
  [TYPE.MAP, 'map'],
  [TYPE.OPAQUE, 'opaque'],
  [TYPE.SPARSE, 'sparse tensor'],
  [TYPE.OPTIONAL, 'optional'],
])

function readDim(bytes: Uint8Array): number {
  let dim = -1
  for (const field of readFields(bytes)) {
    if (field.field === DIM.VALUE) dim = readInteger(field, 'a dimension')
    else if (field.field === DIM.PARAM) dim = -1
  }
  // ONNX Runtime treats a negative value as unknown too.
  return dim < 0 ? -1 : dim
}

function readTensorType(bytes: Uint8Array): Pick<OnnxValue, 'elementType' | 'dims'> {
  let elementType = 0
  let dims: number[] | null = null
  for (const field of readFields(bytes)) {
    if (field.field === TENSOR_TYPE.ELEMENT_TYPE) elementType = readInteger(field, 'element type')
    if (field.field !== TENSOR_TYPE.SHAPE) continue
    dims ??= []
    for (const dim of readFields(requireMessage(field, 'a shape').bytes)) {
      if (dim.field === SHAPE.DIM) dims.push(readDim(requireMessage(dim, 'a dimension').bytes))
    }
  }
  return { elementType, dims }
}

type ValueType = Omit<OnnxValue, 'name'>

const NO_TYPE: ValueType = { kind: 'none', elementType: 0, dims: null }

function readType(bytes: Uint8Array): ValueType {
  let type = NO_TYPE
  for (const field of readFields(bytes)) {
    const kind = KINDS.get(field.field)
    if (kind !== undefined) type = { ...NO_TYPE, kind }
    if (kind === 'tensor')
      type = { kind, ...readTensorType(requireMessage(field, 'a tensor type').bytes) }
  }
  return type
}

async function readValueInfo(
  source: ByteSource,
  header: FieldHeader,
  what: string,
): Promise<OnnxValue> {
  let name = ''
  let type = NO_TYPE
  for (const field of readFields((await readEntry(source, header, what)).bytes)) {
    if (field.field === VALUE_INFO.NAME) name = readText(field, 'a tensor name')
    if (field.field === VALUE_INFO.TYPE)
      type = readType(requireMessage(field, `type of '${name}'`).bytes)
  }
  if (name === '') refuseModel('an input or output has no name')
  return { name, ...type }
}

/** The name of an initializer, or of the tensor that `within` leads to. */
async function findName(source: ByteSource, header: FieldHeader, within?: number): Promise<string> {
  let name = ''
  for await (const field of walk(source, header.start, header.end)) {
    if (field.field === within) name = await findName(source, field)
    else if (within === undefined && field.field === TENSOR.NAME) {
      name = readText(await readEntry(source, field, 'an initializer name'), 'an initializer name')
    }
  }
  return name
}

async function readGraph(source: ByteSource, graph: FieldHeader, draft: Draft): Promise<void> {
  requireMessage(graph, 'a graph')
  draft.hasGraph = true
  for await (const field of walk(source, graph.start, graph.end)) {
    const { inputs, outputs, initializers } = draft
    if (field.field === GRAPH.INPUT) inputs.push(await readValueInfo(source, field, 'an input'))
    else if (field.field === GRAPH.OUTPUT) {
      outputs.push(await readValueInfo(source, field, 'an output'))
    } else if (field.field === GRAPH.INITIALIZER) {
      initializers.add(await findName(source, field))
    } else if (field.field === GRAPH.SPARSE_INITIALIZER) {
      initializers.add(await findName(source, field, SPARSE_TENSOR.VALUES))
    }
  }
}

async function readModel(source: ByteSource, draft: Draft): Promise<void> {
  for await (const field of walk(source, 0, source.size)) {
    if (field.field === MODEL.IR_VERSION) draft.irVersion = readInteger(field, 'the IR version')
    if (field.field === MODEL.GRAPH) await readGraph(source, field, draft)
  }
}

function refuseDuplicates(values: readonly OnnxValue[], what: string): void {
  const seen = new Set<string>()
  for (const { name } of values) {
    if (seen.has(name)) refuseModel(`two ${what}s are named '${name}'`)
    seen.add(name)
  }
}

/**
 * Reads the signature of an ONNX model without its weights: a file is read in windows of 64 KiB, and what lies between
 * the parts of interest is skipped.
 *
 * @param model - the path of a .onnx file, or its bytes (viewed, not kept).
 * @throws ServeError MODEL_LOAD_FAILED if the file cannot be read or is not a model.
 * @see onnx.proto, ModelProto and GraphProto
 */
export async function inspectOnnx(model: string | Uint8Array): Promise<OnnxModel> {
  const source = typeof model === 'string' ? await openFileSource(model) : memorySource(model)
  const draft: Draft = {
    irVersion: 0,
    hasGraph: false,
    inputs: [],
    outputs: [],
    initializers: new Set(),
  }
  try {
    await readModel(source, draft)
  } catch (error) {
    throw toModelError(error)
  } finally {
    await source.close()
  }
  if (!draft.hasGraph) refuseModel('it has no graph')
  if (draft.outputs.length === 0) refuseModel('its graph has no outputs')
  refuseDuplicates(draft.inputs, 'input')
  refuseDuplicates(draft.outputs, 'output')
  const isBacked = (value: OnnxValue): boolean => draft.initializers.has(value.name)
  return {
    irVersion: draft.irVersion,
    inputs: draft.inputs.filter((value) => !isBacked(value)),
    overridable: draft.irVersion >= FIRST_IR_WITH_OVERRIDABLE ? draft.inputs.filter(isBacked) : [],
    outputs: draft.outputs,
  }
}
