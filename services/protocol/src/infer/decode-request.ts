import { type Parameter, WireReader } from '@tutti/tensor'
import { MESSAGE_BOUNDS, tooMany } from '../message-bounds.ts'
import { decodeParameterEntry, decodeTensor } from './decode-tensor.ts'
import {
  type InferRequestMessage,
  NO_PARAMETERS,
  type RequestedOutputMessage,
  type TensorMessage,
  type WireParameters,
} from './infer-message.ts'

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
