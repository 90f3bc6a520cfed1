import { ServeError } from '@tutti/errors'
import {
  type NamedTensor,
  type Parameter,
  type Parameters,
  sizeOfField,
  sizeOfInt64,
  sizeOfText,
  sizeOfVarint,
  WireWriter,
} from '@tutti/tensor'
import {
  type InferRequestParts,
  type InferResponseParts,
  NO_PARAMETERS,
  type StreamResponseParts,
} from './infer-message.ts'

/** The largest message that gRPC's framing and Triton's clients take. */
const MAX_MESSAGE_BYTES = 2 ** 31 - 1

interface TensorSizes {
  readonly shapeBytes: number
  readonly bytes: number
}

function sizeOfBigint(value: bigint): number {
  const bits = BigInt.asUintN(64, value)
  return bits < 0x80n ? 1 : Math.ceil(bits.toString(2).length / 7)
}

function sizeOfParameter(parameter: Parameter): number {
  switch (parameter.kind) {
    case 'bool':
      return 2
    case 'int64':
    case 'uint64':
      return 1 + sizeOfBigint(parameter.value)
    case 'string':
      return sizeOfField(Buffer.byteLength(parameter.value))
    case 'double':
      break
  }
  return 9
}

function sizeOfEntry(key: string, parameter: Parameter): number {
  return sizeOfText(key) + sizeOfField(sizeOfParameter(parameter))
}

function sizeOfParameters(parameters: Parameters): number {
  if (parameters.size === 0) return 0
  let size = 0
  for (const [key, parameter] of parameters) size += sizeOfField(sizeOfEntry(key, parameter))
  return size
}

/** Members of a oneof are written even if they hold their default: which one is set is the message. */
function writeParameter(writer: WireWriter, parameter: Parameter): void {
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

function writeParameters(writer: WireWriter, tag: number, parameters: Parameters): void {
  if (parameters.size === 0) return
  for (const [key, parameter] of parameters) {
    writer.byte(tag)
    writer.varint(sizeOfEntry(key, parameter))
    writer.text(10, key)
    writer.byte(18)
    writer.varint(sizeOfParameter(parameter))
    writeParameter(writer, parameter)
  }
}

function sizesOfTensor(tensor: NamedTensor): TensorSizes {
  let shapeBytes = 0
  for (const extent of tensor.shape) shapeBytes += sizeOfInt64(extent)
  const shape = tensor.shape.length === 0 ? 0 : sizeOfField(shapeBytes)
  return { shapeBytes, bytes: sizeOfText(tensor.name) + sizeOfText(tensor.datatype) + shape }
}

function writeTensor(writer: WireWriter, tensor: NamedTensor, sizes: TensorSizes): void {
  writer.byte(42)
  writer.varint(sizes.bytes)
  writer.text(10, tensor.name)
  writer.text(18, tensor.datatype)
  if (tensor.shape.length === 0) return
  writer.byte(26)
  writer.varint(sizes.shapeBytes)
  for (const extent of tensor.shape) writer.int64(extent)
}

/** What requests and responses have in common: three texts, parameters and tensors, all with one-byte tags. */
interface Message {
  readonly texts: readonly [string, string, string]
  readonly parameters: Parameters
  readonly tensors: readonly NamedTensor[]
  readonly outputs: readonly { readonly name: string; readonly parameters?: Parameters }[]
  /** Tag of the raw contents, which end the message. */
  readonly rawTag: number
}

class MessageEncoder {
  readonly #message: Message
  readonly #sizes: readonly TensorSizes[]
  /** Bytes of the encoded message. */
  readonly sizeBytes: number

  constructor(message: Message) {
    this.#message = message
    this.#sizes = message.tensors.map(sizesOfTensor)
    let size = sizeOfParameters(message.parameters)
    for (const text of message.texts) size += sizeOfText(text)
    for (const { bytes } of this.#sizes) size += sizeOfField(bytes)
    for (const output of message.outputs) size += sizeOfField(sizeOfOutput(output))
    for (const { data } of message.tensors) size += sizeOfField(data.byteLength)
    if (size > MAX_MESSAGE_BYTES) {
      throw new ServeError(
        'MESSAGE_TOO_LARGE',
        `message has ${size} bytes, want at most ${MAX_MESSAGE_BYTES}`,
      )
    }
    this.sizeBytes = size
  }

  write(writer: WireWriter): void {
    const { texts, parameters, tensors, outputs, rawTag } = this.#message
    writer.text(10, texts[0])
    writer.text(18, texts[1])
    writer.text(26, texts[2])
    writeParameters(writer, 34, parameters)
    for (const [i, sizes] of this.#sizes.entries()) {
      const tensor = tensors[i]
      if (tensor !== undefined) writeTensor(writer, tensor, sizes)
    }
    for (const output of outputs) {
      writer.byte(50)
      writer.varint(sizeOfOutput(output))
      writer.text(10, output.name)
      writeParameters(writer, 18, output.parameters ?? NO_PARAMETERS)
    }
    for (const { data } of tensors) writer.field(rawTag, data)
  }
}

function sizeOfOutput(output: Message['outputs'][number]): number {
  return sizeOfText(output.name) + sizeOfParameters(output.parameters ?? NO_PARAMETERS)
}

function responseEncoder(response: InferResponseParts): MessageEncoder {
  return new MessageEncoder({
    texts: [response.modelName, response.modelVersion, response.id],
    parameters: response.parameters,
    tensors: response.outputs,
    outputs: [],
    rawTag: 50,
  })
}

/**
 * Encodes a ModelInferRequest, tensors as raw_input_contents.
 *
 * @returns one buffer; each tensor is copied once.
 * @throws ServeError MESSAGE_TOO_LARGE above 2^31 - 1 bytes.
 */
export function encodeInferRequest(request: InferRequestParts): Buffer {
  const encoder = new MessageEncoder({
    texts: [request.modelName, request.modelVersion ?? '', request.id ?? ''],
    parameters: request.parameters ?? NO_PARAMETERS,
    tensors: request.inputs,
    outputs: request.outputs ?? [],
    rawTag: 58,
  })
  const writer = new WireWriter(encoder.sizeBytes)
  encoder.write(writer)
  return writer.bytes
}

const FRAME_HEADER_BYTES = 5

/** A writer behind the header of gRPC's frame: not compressed, its length. */
function frameWriter(messageBytes: number): WireWriter {
  const writer = new WireWriter(FRAME_HEADER_BYTES + messageBytes)
  writer.byte(0)
  writer.position = writer.bytes.writeUInt32BE(messageBytes, writer.position)
  return writer
}

/**
 * Encodes a ModelInferResponse as a frame of gRPC: one entry of raw_output_contents per output, in the same order, never
 * typed contents.
 *
 * @returns one buffer; each tensor is copied once.
 * @throws ServeError MESSAGE_TOO_LARGE above 2^31 - 1 bytes.
 */
export function encodeInferResponseFrame(response: InferResponseParts): Buffer {
  const encoder = responseEncoder(response)
  const writer = frameWriter(encoder.sizeBytes)
  encoder.write(writer)
  return writer.bytes
}

/** Encodes a ModelStreamInferResponse as a frame of gRPC, as `encodeInferResponseFrame`. */
export function encodeStreamResponseFrame(message: StreamResponseParts): Buffer {
  const error = sizeOfText(message.errorMessage)
  const encoder = message.response === undefined ? undefined : responseEncoder(message.response)
  const body = encoder === undefined ? 0 : 1 + sizeOfVarint(encoder.sizeBytes) + encoder.sizeBytes
  const writer = frameWriter(error + body)
  writer.text(10, message.errorMessage)
  if (encoder !== undefined) {
    writer.byte(18)
    writer.varint(encoder.sizeBytes)
    encoder.write(writer)
  }
  return writer.bytes
}
