import { malformed, WireReader, WireWriter } from '@tutti/formats'
import { isDatatype, type NamedTensor, type Parameter, type Parameters } from '@tutti/tensor'
import { MAX_MESSAGE_BYTES, tooLargeMessage } from '../message-bounds.ts'
import { readContents } from './contents.ts'
import {
  type InferResponse,
  NO_PARAMETERS,
  type OutgoingRequest,
  type StreamResponse,
  type TensorMessage,
} from './infer-message.ts'
import {
  encodeHead,
  MessageDecoder,
  RAW_INPUTS,
  RAW_OUTPUTS,
  writeParameterMap,
} from './server-codec.ts'

/**
 * Encodes a ModelInferRequest, with one entry of raw_input_contents per input.
 *
 * @returns one buffer; each tensor is copied once.
 * @throws ServeError MESSAGE_TOO_LARGE above 2^31 - 1 bytes.
 */
export function encodeInferRequest(request: OutgoingRequest): Buffer {
  const { modelName, modelVersion = '', id = '', parameters = NO_PARAMETERS, inputs } = request
  const { head, sizeBytes } = encodeHead({ modelName, modelVersion, id, parameters }, inputs)
  const outputs = encodeRequestedOutputs(request.outputs ?? [])
  const messageBytes = sizeBytes + outputs.byteLength
  if (messageBytes > MAX_MESSAGE_BYTES) throw tooLargeMessage(messageBytes)
  const writer = new WireWriter(messageBytes)
  writer.raw(head)
  for (const { data } of inputs) writer.field(RAW_INPUTS, data)
  writer.raw(outputs)
  return writer.bytes
}

function encodeRequestedOutputs(outputs: NonNullable<OutgoingRequest['outputs']>): Uint8Array {
  const writer = new WireWriter(0)
  for (const { name, parameters = NO_PARAMETERS } of outputs) {
    const output = writer.begin(50)
    writer.text(10, name)
    writeParameterMap(writer, 18, parameters)
    writer.end(output)
  }
  return writer.bytes
}

function finish(decoder: MessageDecoder): InferResponse {
  const { modelName, modelVersion, id, rawInputContents } = decoder
  const outputs = decoder.inputs.map((output, i) => toTensor(output, rawInputContents[i]))
  return { modelName, modelVersion, id, parameters: knownParameters(decoder), outputs }
}

function knownParameters({ parameters }: MessageDecoder): Parameters {
  const known = new Map<string, Parameter>()
  for (const [key, parameter] of parameters) {
    if (parameter === undefined) throw malformed(`parameter '${key}' has no value`)
    known.set(key, parameter)
  }
  return known
}

function toTensor(output: TensorMessage, raw: Uint8Array | undefined): NamedTensor {
  const { name, datatype, shape } = output
  if (!isDatatype(datatype)) throw malformed(`output '${name}' has datatype '${datatype}'`)
  // MLServer sends empty contents beside raw ones.
  if (raw !== undefined) return { name, datatype, shape, data: raw }
  if (output.contents === undefined) throw malformed(`output '${name}' has no data`)
  const read = readContents(output.contents, datatype, { maxBytes: MAX_MESSAGE_BYTES })
  if (read.kind === 'data') return { name, datatype, shape, data: read.data }
  throw malformed(`output '${name}' of datatype ${datatype} has contents of another`)
}

/**
 * Decodes a ModelInferResponse of ours or of another server, raw or typed.
 *
 * @param bytes - viewed: the data of the outputs are views into it unless they came typed.
 * @throws ServeError MALFORMED_MESSAGE for bytes that are no such message or an output without usable data.
 */
export function decodeInferResponse(bytes: Uint8Array): InferResponse {
  const reader = new WireReader(bytes)
  const decoder = new MessageDecoder(RAW_OUTPUTS)
  while (reader.hasMore()) decoder.read(reader)
  return finish(decoder)
}

/** Decodes a ModelStreamInferResponse. Views and errors are those of `decodeInferResponse`. */
export function decodeStreamResponse(bytes: Uint8Array): StreamResponse {
  const reader = new WireReader(bytes)
  let errorMessage = ''
  let decoder: MessageDecoder | undefined
  while (reader.hasMore()) {
    const tag = reader.tag()
    if (tag === 10) errorMessage = reader.text(Number.POSITIVE_INFINITY)
    else if (tag === 18) {
      decoder ??= new MessageDecoder(RAW_OUTPUTS)
      const outer = reader.enter()
      while (reader.hasMore()) decoder.read(reader)
      reader.leave(outer)
    } else reader.skip(tag)
  }
  return decoder === undefined ? { errorMessage } : { errorMessage, response: finish(decoder) }
}
