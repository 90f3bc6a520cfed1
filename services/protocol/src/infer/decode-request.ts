import { ServeError } from '@tutti/errors'
import { type Parameter, WireReader } from '@tutti/tensor'
import { MESSAGE_BOUNDS, tooMany } from '../message-bounds.ts'
import {
  type InferRequestMessage,
  NO_PARAMETERS,
  type RequestedOutputMessage,
  type TensorMessage,
  type WireParameters,
} from './infer-message.ts'

function decodeParameter(reader: WireReader, before: Parameter | undefined): Parameter | undefined {
  let parameter = before
  const outer = reader.enter()
  while (reader.hasMore()) {
    const tag = reader.tag()
    switch (tag) {
      case 8:
        parameter = { kind: 'bool', value: reader.bool() }
        break
      case 16:
        parameter = { kind: 'int64', value: reader.int64() }
        break
      case 26:
        parameter = { kind: 'string', value: reader.text() }
        break
      case 33:
        parameter = { kind: 'double', value: reader.double() }
        break
      case 40:
        parameter = { kind: 'uint64', value: reader.uint64() }
        break
      default:
        reader.skip(tag)
    }
  }
  reader.leave(outer)
  return parameter
}

/** Reads one entry of a `map<string, InferParameter>` into `parameters`; the last of equal keys wins. */
export function decodeParameterEntry(
  reader: WireReader,
  parameters: Map<string, Parameter | undefined>,
): void {
  let key = ''
  let value: Parameter | undefined
  const outer = reader.enter()
  while (reader.hasMore()) {
    const tag = reader.tag()
    if (tag === 10) key = reader.text()
    else if (tag === 18) value = decodeParameter(reader, value)
    else reader.skip(tag)
  }
  reader.leave(outer)
  if (parameters.size >= MESSAGE_BOUNDS.parameters) throw tooMany('parameters')
  parameters.set(key, value)
}

/** The extents of a shape as they come; one that is out of range is kept for when the tensor's name is known. */
class ShapeDecoder {
  readonly extents: number[] = []
  outOfRange: bigint | undefined

  read(reader: WireReader): void {
    if (this.extents.length >= MESSAGE_BOUNDS.rank) throw tooMany('rank')
    const extent = reader.safeInt64()
    if (typeof extent === 'number') this.extents.push(extent)
    else this.outOfRange ??= extent
  }

  readPacked(reader: WireReader): void {
    const outer = reader.enter()
    while (reader.hasMore()) this.read(reader)
    reader.leave(outer)
  }

  finish(tensor: string): readonly number[] {
    if (this.outOfRange === undefined) return this.extents
    throw new ServeError(
      'INVALID_REQUEST',
      `shape of tensor '${tensor}' has the extent ${this.outOfRange}, want 0 to 2^53 - 1`,
      { details: { field: `${tensor}.shape` } },
    )
  }
}

/** Protobuf merges a message field that comes twice, which for encoded bytes is putting one after the other. */
function merge(before: Uint8Array | undefined, more: Uint8Array): Uint8Array {
  return before === undefined ? more : Buffer.concat([before, more])
}

/** Reads an InferInputTensor or InferOutputTensor, which are laid out alike. */
export function decodeTensor(reader: WireReader): TensorMessage {
  let name = ''
  let datatype = ''
  const shape = new ShapeDecoder()
  let parameters: Map<string, Parameter | undefined> | undefined
  let contents: Uint8Array | undefined
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
        shape.read(reader)
        break
      case 26:
        shape.readPacked(reader)
        break
      case 34:
        parameters ??= new Map()
        decodeParameterEntry(reader, parameters)
        break
      case 42:
        contents = merge(contents, reader.view())
        break
      default:
        reader.skip(tag)
    }
  }
  reader.leave(outer)
  const tensor = {
    name,
    datatype,
    shape: shape.finish(name),
    parameters: parameters ?? NO_PARAMETERS,
  }
  return contents === undefined ? tensor : { ...tensor, contents }
}

function decodeRequestedOutput(reader: WireReader): RequestedOutputMessage {
  let name = ''
  let parameters: Map<string, Parameter | undefined> | undefined
  const outer = reader.enter()
  while (reader.hasMore()) {
    const tag = reader.tag()
    if (tag === 10) name = reader.text()
    else if (tag === 18) {
      parameters ??= new Map()
      decodeParameterEntry(reader, parameters)
    } else reader.skip(tag)
  }
  reader.leave(outer)
  return { name, parameters: parameters ?? NO_PARAMETERS }
}

/** Decodes a request, or a response, which is laid out alike but for requested outputs and the tag of raw contents. */
export class MessageDecoder {
  modelName = ''
  modelVersion = ''
  id = ''
  readonly inputs: TensorMessage[] = []
  readonly outputs: RequestedOutputMessage[] = []
  readonly rawInputContents: Uint8Array[] = []
  readonly #kind: 'request' | 'response'
  readonly #rawTag: number
  #parameters: Map<string, Parameter | undefined> | undefined

  constructor(kind: 'request' | 'response') {
    this.#kind = kind
    this.#rawTag = kind === 'request' ? 58 : 50
  }

  get parameters(): WireParameters {
    return this.#parameters ?? NO_PARAMETERS
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
        this.#parameters ??= new Map()
        decodeParameterEntry(reader, this.#parameters)
        break
      default:
        this.#readTensors(reader, tag)
    }
  }

  #readTensors(reader: WireReader, tag: number): void {
    if (tag === 42) {
      const what = this.#kind === 'request' ? 'inputs' : 'outputs'
      if (this.inputs.length >= MESSAGE_BOUNDS[what]) throw tooMany(what)
      this.inputs.push(decodeTensor(reader))
    } else if (tag === this.#rawTag) {
      if (this.rawInputContents.length >= MESSAGE_BOUNDS.rawContents) throw tooMany('rawContents')
      this.rawInputContents.push(reader.view())
    } else if (tag === 50) {
      if (this.outputs.length >= MESSAGE_BOUNDS.outputs) throw tooMany('outputs')
      this.outputs.push(decodeRequestedOutput(reader))
    } else reader.skip(tag)
  }
}

/**
 * Decodes a ModelInferRequest.
 *
 * @param bytes - viewed: raw contents and typed contents of the result are views into it.
 * @throws ServeError MALFORMED_MESSAGE for bytes that are no such message, MESSAGE_TOO_LARGE beyond MESSAGE_BOUNDS.
 */
export function decodeInferRequest(bytes: Uint8Array): InferRequestMessage {
  const reader = new WireReader(bytes)
  const decoder = new MessageDecoder('request')
  while (reader.hasMore()) decoder.read(reader)
  return decoder
}
