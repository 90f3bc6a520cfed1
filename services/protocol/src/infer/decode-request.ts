import { ServeError } from '@tutti/errors'
import { type Parameter, WireReader } from '@tutti/tensor'
import { MESSAGE_BOUNDS, tooMany } from '../message-bounds.ts'
import { readParameter } from './decode-parameters.ts'
import {
  type InferRequestMessage,
  NO_PARAMETERS,
  type RequestedOutputMessage,
  type TensorMessage,
  type WireParameters,
} from './infer-message.ts'

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

/** Decodes a request, or a response, which is laid out alike but for requested outputs and the tag of raw contents. */
export class MessageDecoder {
  modelName = ''
  modelVersion = ''
  id = ''
  parameters: WireParameters = NO_PARAMETERS
  readonly inputs: TensorMessage[] = []
  readonly outputs: RequestedOutputMessage[] = []
  readonly rawInputContents: Uint8Array[] = []
  readonly #kind: 'request' | 'response'
  readonly #rawTag: number
  #given: Map<string, Parameter | undefined> | undefined

  constructor(kind: 'request' | 'response') {
    this.#kind = kind
    this.#rawTag = kind === 'request' ? 58 : 50
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
        this.parameters = this.#given = readParameter(reader, this.#given)
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

/** Reads an InferInputTensor or InferOutputTensor, which are laid out alike. */
function decodeTensor(reader: WireReader): TensorMessage {
  let name = ''
  let datatype = ''
  const shape: number[] = []
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
        readExtent(reader, shape)
        break
      case 26:
        readExtents(reader, shape)
        break
      case 34:
        parameters = readParameter(reader, parameters)
        break
      case 42: {
        // Protobuf merges a message field that comes twice, which for encoded bytes is putting one after the other.
        const more = reader.view()
        contents = contents === undefined ? more : Buffer.concat([contents, more])
        break
      }
      default:
        reader.skip(tag)
    }
  }
  reader.leave(outer)
  // Only now is the name known.
  if (shape.includes(Number.NaN)) throw extentOutOfRange(name)
  const tensor = { name, datatype, shape, parameters: parameters ?? NO_PARAMETERS }
  return contents === undefined ? tensor : { ...tensor, contents }
}

/** One that is no safe integer becomes NaN. */
function readExtent(reader: WireReader, shape: number[]): void {
  if (shape.length >= MESSAGE_BOUNDS.rank) throw tooMany('rank')
  const extent = reader.safeInt64()
  shape.push(typeof extent === 'number' ? extent : Number.NaN)
}

function readExtents(reader: WireReader, shape: number[]): void {
  const outer = reader.enter()
  while (reader.hasMore()) readExtent(reader, shape)
  reader.leave(outer)
}

function extentOutOfRange(tensor: string): ServeError {
  const text = `shape of tensor '${tensor}' has an extent out of range, want 0 to 2^53 - 1`
  return new ServeError('INVALID_REQUEST', text, { details: { field: `${tensor}.shape` } })
}

function decodeRequestedOutput(reader: WireReader): RequestedOutputMessage {
  let name = ''
  let parameters: Map<string, Parameter | undefined> | undefined
  const outer = reader.enter()
  while (reader.hasMore()) {
    const tag = reader.tag()
    if (tag === 10) name = reader.text()
    else if (tag === 18) parameters = readParameter(reader, parameters)
    else reader.skip(tag)
  }
  reader.leave(outer)
  return { name, parameters: parameters ?? NO_PARAMETERS }
}
