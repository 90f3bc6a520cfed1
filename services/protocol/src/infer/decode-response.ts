import {
  isDatatype,
  malformed,
  type NamedTensor,
  type Parameter,
  type Parameters,
  WireReader,
} from '@tutti/tensor'
import { MESSAGE_BOUNDS, tooMany } from '../message-bounds.ts'
import { readContents } from './contents.ts'
import { decodeParameterEntry, decodeTensor } from './decode-tensor.ts'
import {
  type InferResponseParts,
  NO_PARAMETERS,
  type StreamResponseParts,
  type TensorMessage,
} from './infer-message.ts'

const MAX_CONTENTS_BYTES = 2 ** 31 - 1

class ResponseDecoder {
  modelName = ''
  modelVersion = ''
  id = ''
  readonly #outputs: TensorMessage[] = []
  readonly #raw: Uint8Array[] = []
  #parameters: Map<string, Parameter | undefined> | undefined

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
      case 42:
        if (this.#outputs.length >= MESSAGE_BOUNDS.outputs) throw tooMany('outputs')
        this.#outputs.push(decodeTensor(reader))
        break
      case 50:
        if (this.#raw.length >= MESSAGE_BOUNDS.rawContents) throw tooMany('rawContents')
        this.#raw.push(reader.view())
        break
      default:
        reader.skip(tag)
    }
  }

  finish(): InferResponseParts {
    const { modelName, modelVersion, id } = this
    const outputs = this.#outputs.map((output, i) => toTensor(output, this.#raw[i]))
    return { modelName, modelVersion, id, parameters: this.#knownParameters(), outputs }
  }

  #knownParameters(): Parameters {
    const known = new Map<string, Parameter>()
    for (const [key, parameter] of this.#parameters ?? NO_PARAMETERS) {
      if (parameter === undefined) throw malformed(`parameter '${key}' has no value`)
      known.set(key, parameter)
    }
    return known
  }
}

function toTensor(output: TensorMessage, raw: Uint8Array | undefined): NamedTensor {
  const { name, datatype, shape } = output
  if (!isDatatype(datatype)) throw malformed(`output '${name}' has datatype '${datatype}'`)
  if (output.contents === undefined) {
    if (raw === undefined) throw malformed(`output '${name}' has no data`)
    return { name, datatype, shape, data: raw }
  }
  const read = readContents(output.contents, datatype, MAX_CONTENTS_BYTES)
  if (read.kind === 'data') return { name, datatype, shape, data: read.data }
  throw malformed(`output '${name}' of datatype ${datatype} has contents of another`)
}

/**
 * Decodes a ModelInferResponse of ours or of another server, raw or typed.
 *
 * @param bytes - viewed: the data of the outputs are views into it unless they came typed.
 * @throws ServeError MALFORMED_MESSAGE for bytes that are no such message or an output without usable data.
 */
export function decodeInferResponse(bytes: Uint8Array): InferResponseParts {
  const reader = new WireReader(bytes)
  const decoder = new ResponseDecoder()
  while (reader.hasMore()) decoder.read(reader)
  return decoder.finish()
}

/** Decodes a ModelStreamInferResponse; as `decodeInferResponse`. */
export function decodeStreamResponse(bytes: Uint8Array): StreamResponseParts {
  const reader = new WireReader(bytes)
  let errorMessage = ''
  let decoder: ResponseDecoder | undefined
  while (reader.hasMore()) {
    const tag = reader.tag()
    if (tag === 10) errorMessage = reader.text()
    else if (tag === 18) {
      decoder ??= new ResponseDecoder()
      const outer = reader.enter()
      while (reader.hasMore()) decoder.read(reader)
      reader.leave(outer)
    } else reader.skip(tag)
  }
  return decoder === undefined ? { errorMessage } : { errorMessage, response: decoder.finish() }
}
