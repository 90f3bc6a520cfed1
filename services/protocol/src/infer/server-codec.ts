import { ServeError } from '@tutti/errors'
import { sizeOfField, WireReader, WireWriter } from '@tutti/formats'
import { type NamedTensor, type Parameter, type Parameters } from '@tutti/tensor'
import {
  extentOutOfRange,
  MAX_FIELDS,
  MAX_MESSAGE_BYTES,
  MESSAGE_BOUNDS,
  ParameterBudget,
  tooLargeMessage,
  tooManyEntries,
} from '../message-bounds.ts'
import { readParameter, readRequestedOutput } from './decode-parameters.ts'
import {
  type InferRequestMessage,
  type InferResponse,
  NO_PARAMETERS,
  type RequestedOutputMessage,
  type TensorMessage,
  type WireParameters,
} from './infer-message.ts'

const FRAME_HEADER_BYTES = 5
/** Tags of the raw contents. */
export const RAW_INPUTS = 58
export const RAW_OUTPUTS = 50
/** Bytes that are enough for the names, shapes and parameters of most messages. */
export const USUAL_HEAD_BYTES = 512
const NOTHING = new Uint8Array(0)
/** Bytes of a character: one beyond Latin-1 makes all characters of a text take as much. */
const CHARACTER_BYTES = 2
/**
 * Bytes of the contents of an input that come in several fields, as no writer of protobuf puts them: they are copied, for 4096
 * inputs.
 */
const MAX_JOINED_BYTES = 2 ** 14
/** Bytes of the objects that a field of two bytes can become: an input, an output, a view. */
const FIELD_BYTES = 256

/**
 * Decodes a ModelInferRequest.
 *
 * @param bytes - viewed: raw contents and typed contents of the result are views into it.
 * @throws ServeError MALFORMED_MESSAGE for bytes that are no such message, MESSAGE_TOO_LARGE beyond MESSAGE_BOUNDS and
 * MAX_FIELDS.
 */
export function decodeInferRequest(bytes: Uint8Array): InferRequestMessage {
  const reader = new WireReader(bytes, MAX_FIELDS)
  const decoder = new MessageDecoder(RAW_INPUTS)
  while (reader.hasMore()) decoder.read(reader)
  decoder.count(reader)
  return decoder
}

/**
 * Decodes a ModelInferRequest or a ModelInferResponse. They differ only in the requested outputs and in the tag of raw contents.
 */
export class MessageDecoder {
  modelName = ''
  modelVersion = ''
  id = ''
  parameters: WireParameters = NO_PARAMETERS
  readonly inputs: TensorMessage[] = []
  readonly outputs: RequestedOutputMessage[] = []
  readonly rawInputContents: Uint8Array[] = []
  madeBytes = 0
  readonly #rawTag: number
  readonly #budget: ParameterBudget
  #given: Map<string, Parameter | undefined> | undefined

  /** @param rawTag - RAW_INPUTS for a request, RAW_OUTPUTS for a response. */
  constructor(rawTag: number) {
    this.#rawTag = rawTag
    // Our own servers bound what they answer otherwise.
    this.#budget = new ParameterBudget(rawTag === RAW_INPUTS ? undefined : Number.POSITIVE_INFINITY)
  }

  /** Sets `madeBytes` from the reader's counts. Called once the whole message is read. */
  count({ textBytes, fields }: WireReader): void {
    this.madeBytes = CHARACTER_BYTES * textBytes + FIELD_BYTES * fields
  }

  read(reader: WireReader): void {
    const tag = reader.tag()
    switch (tag) {
      case 10:
        this.modelName = reader.text()
        break
      case 18:
        this.modelVersion = reader.text()
        break
      case 26:
        this.id = reader.text()
        break
      case 34:
        this.parameters = this.#given = readParameter(reader, this.#given, this.#budget)
        break
      default:
        this.#readTensors(reader, tag)
    }
  }

  #readTensors(reader: WireReader, tag: number): void {
    if (tag === 42) {
      const what = this.#rawTag === RAW_INPUTS ? 'inputs' : 'outputs'
      if (this.inputs.length >= MESSAGE_BOUNDS[what]) throw tooManyEntries(what)
      this.inputs.push(decodeTensor(reader, this.#budget))
    } else if (tag === this.#rawTag) {
      if (this.rawInputContents.length >= MESSAGE_BOUNDS.rawContents)
        throw tooManyEntries('rawContents')
      this.rawInputContents.push(reader.view())
    } else if (tag === 50) {
      if (this.outputs.length >= MESSAGE_BOUNDS.outputs) throw tooManyEntries('outputs')
      this.outputs.push(readRequestedOutput(reader, this.#budget))
    } else reader.skip(tag)
  }
}

/** Reads an InferInputTensor or InferOutputTensor, which are laid out alike. */
function decodeTensor(reader: WireReader, budget: ParameterBudget): TensorMessage {
  let name = ''
  let datatype = ''
  const shape: number[] = []
  let parameters: Map<string, Parameter | undefined> | undefined
  const contents: Uint8Array[] = []
  const outer = reader.enter()
  while (reader.hasMore()) {
    const tag = reader.tag()
    switch (tag) {
      case 10:
        name = reader.text()
        break
      case 18:
        datatype = reader.text()
        break
      case 24:
        readExtent(reader, shape)
        break
      case 26:
        readExtents(reader, shape)
        break
      case 34:
        parameters = readParameter(reader, parameters, budget)
        break
      case 42:
        // Protobuf merges a message field that comes twice, which for encoded bytes is putting one after the other.
        contents.push(reader.view())
        break
      default:
        reader.skip(tag)
    }
  }
  reader.leave(outer)
  // Only now is the name known.
  if (shape.includes(Number.NaN)) throw extentOutOfRange(name)
  const tensor = { name, datatype, shape, parameters: parameters ?? NO_PARAMETERS }
  const [first] = contents
  if (first === undefined) return tensor
  return { ...tensor, contents: contents.length === 1 ? first : joinContents(name, contents) }
}

/** @throws ServeError MESSAGE_TOO_LARGE */
function joinContents(input: string, contents: readonly Uint8Array[]): Uint8Array {
  const sizeBytes = contents.reduce((sum, { byteLength }) => sum + byteLength, 0)
  if (sizeBytes <= MAX_JOINED_BYTES) return Buffer.concat(contents)
  const text = `contents of input '${input}' come in ${contents.length} fields of ${sizeBytes} bytes, want at most ${MAX_JOINED_BYTES} unless in one field`
  throw new ServeError('MESSAGE_TOO_LARGE', text)
}

/** Reads an extent. One that is no safe integer becomes NaN. */
function readExtent(reader: WireReader, shape: number[]): void {
  if (shape.length >= MESSAGE_BOUNDS.rank) throw tooManyEntries('rank')
  reader.count()
  const extent = reader.int64()
  shape.push(Number.isSafeInteger(extent) ? extent : Number.NaN)
}

function readExtents(reader: WireReader, shape: number[]): void {
  const outer = reader.enter()
  while (reader.hasMore()) readExtent(reader, shape)
  reader.leave(outer)
}

/**
 * Encodes a ModelInferResponse as a frame of gRPC. It has one entry of raw_output_contents per output, in the same order, and
 * never typed contents.
 *
 * @returns one buffer; each tensor is copied once.
 * @throws ServeError MESSAGE_TOO_LARGE above 2^31 - 1 bytes.
 */
export function encodeInferResponseFrame(response: InferResponse): Buffer {
  return toResponseFrame(NOTHING, encodeHead(response, response.outputs), response.outputs)
}

/** Fields that requests and responses begin with. */
type Fields = Omit<InferResponse, 'outputs'>

/** A message but for its raw contents, and its size with them. */
interface Head {
  readonly head: Uint8Array
  readonly sizeBytes: number
}

/** Encodes a request or a response up to its raw contents. */
export function encodeHead(fields: Fields, tensors: readonly NamedTensor[]): Head {
  const writer = new WireWriter(USUAL_HEAD_BYTES)
  writer.text(10, fields.modelName)
  writer.text(18, fields.modelVersion)
  writer.text(26, fields.id)
  if (fields.parameters.size > 0) writeParameterMap(writer, 34, fields.parameters)
  for (const tensor of tensors) writeTensor(writer, tensor)
  const head = writer.bytes
  let sizeBytes = head.byteLength
  for (const { data } of tensors) sizeBytes += sizeOfField(data.byteLength)
  return { head, sizeBytes }
}

function writeTensor(writer: WireWriter, { name, datatype, shape }: NamedTensor): void {
  const tensor = writer.begin(42)
  writer.text(10, name)
  writer.text(18, datatype)
  if (shape.length > 0) {
    const extents = writer.begin(26)
    for (const extent of shape) writer.int64(extent)
    writer.end(extents)
  }
  writer.end(tensor)
}

/** Writes a `map<string, InferParameter>`, the field `tag` of a message. */
export function writeParameterMap(writer: WireWriter, tag: number, parameters: Parameters): void {
  for (const [key, parameter] of parameters) {
    const entry = writer.begin(tag)
    writer.text(10, key)
    const value = writer.begin(18)
    writeValue(writer, parameter)
    writer.end(value)
    writer.end(entry)
  }
}

/** Writes a member of a oneof, even if it holds its default: which member is set is the message. */
function writeValue(writer: WireWriter, parameter: Parameter): void {
  switch (parameter.kind) {
    case 'bool':
      writer.byte(8)
      return writer.byte(parameter.value ? 1 : 0)
    case 'int64':
      writer.byte(16)
      return writer.bigint(parameter.value)
    case 'string':
      return writer.textAlways(26, parameter.value)
    case 'double':
      writer.byte(33)
      return writer.double(parameter.value)
    case 'uint64':
      writer.byte(40)
      return writer.bigint(parameter.value)
  }
}

/**
 * Makes one uncompressed frame of gRPC from the bytes before a response, the head of the response and its outputs.
 *
 * @throws ServeError MESSAGE_TOO_LARGE above 2^31 - 1 bytes.
 */
export function toResponseFrame(
  before: Uint8Array,
  { head, sizeBytes }: Head,
  outputs: readonly NamedTensor[],
): Buffer {
  const messageBytes = before.byteLength + sizeBytes
  if (messageBytes > MAX_MESSAGE_BYTES) throw tooLargeMessage(messageBytes)
  const writer = new WireWriter(FRAME_HEADER_BYTES + messageBytes)
  writer.byte(0)
  for (const shift of [24, 16, 8, 0]) writer.byte(messageBytes >>> shift)
  writer.raw(before)
  writer.raw(head)
  for (const { data } of outputs) writer.field(RAW_OUTPUTS, data)
  return writer.bytes
}
