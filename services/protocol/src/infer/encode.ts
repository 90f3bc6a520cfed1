import { ServeError } from '@tutti/errors'
import {
  type NamedTensor,
  type Parameter,
  type Parameters,
  sizeOfField,
  sizeOfInt64,
  sizeOfText,
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
const FRAME_HEADER_BYTES = 5
/** Tags of the raw contents. */
const RAW_OUTPUTS = 50
const RAW_INPUTS = 58

/**
 * Encodes a ModelInferResponse as a frame of gRPC: one entry of raw_output_contents per output, in the same order, never
 * typed contents.
 *
 * @returns one buffer; each tensor is copied once.
 * @throws ServeError MESSAGE_TOO_LARGE above 2^31 - 1 bytes.
 */
export function encodeInferResponseFrame(response: InferResponseParts): Buffer {
  const writer = frameWriter(sizeOfMessage(response, response.outputs))
  writeMessage(writer, response, response.outputs, RAW_OUTPUTS)
  return writer.bytes
}

/** Encodes a ModelStreamInferResponse as a frame of gRPC, as `encodeInferResponseFrame`. */
export function encodeStreamResponseFrame({ errorMessage, response }: StreamResponseParts): Buffer {
  const error = sizeOfText(errorMessage)
  const size = response === undefined ? 0 : sizeOfMessage(response, response.outputs)
  const writer = frameWriter(error + (response === undefined ? 0 : sizeOfField(size)))
  writer.text(10, errorMessage)
  if (response !== undefined) {
    writer.byte(18)
    writer.varint(size)
    writeMessage(writer, response, response.outputs, RAW_OUTPUTS)
  }
  return writer.bytes
}

/** Encodes a ModelInferRequest, tensors as raw_input_contents; as `encodeInferResponseFrame`, without a frame. */
export function encodeInferRequest(request: InferRequestParts): Buffer {
  const { modelName, modelVersion = '', id = '', parameters = NO_PARAMETERS, inputs } = request
  const head = { modelName, modelVersion, id, parameters }
  const outputs = request.outputs ?? []
  let size = sizeOfMessage(head, inputs)
  for (const output of outputs) size += sizeOfField(sizeOfOutput(output))
  const writer = new WireWriter(checkSize(size))
  writeMessage(writer, head, inputs, RAW_INPUTS)
  for (const output of outputs) {
    writer.byte(50)
    writer.varint(sizeOfOutput(output))
    writer.text(10, output.name)
    writeParameters(writer, 18, output.parameters ?? NO_PARAMETERS)
  }
  return writer.bytes
}

/** What requests and responses begin with. */
type Head = Omit<InferResponseParts, 'outputs'>

function sizeOfMessage(head: Head, tensors: readonly NamedTensor[]): number {
  let size = sizeOfText(head.modelName) + sizeOfText(head.modelVersion) + sizeOfText(head.id)
  if (head.parameters.size > 0) size += sizeOfParameters(head.parameters)
  for (const tensor of tensors) {
    size += sizeOfField(sizeOfTensor(tensor)) + sizeOfField(tensor.data.byteLength)
  }
  return size
}

function writeMessage(
  writer: WireWriter,
  head: Head,
  tensors: readonly NamedTensor[],
  rawTag: number,
): void {
  writer.text(10, head.modelName)
  writer.text(18, head.modelVersion)
  writer.text(26, head.id)
  if (head.parameters.size > 0) writeParameters(writer, 34, head.parameters)
  for (const tensor of tensors) writeTensor(writer, tensor)
  for (const { data } of tensors) writer.field(rawTag, data)
}

function sizeOfTensor({ name, datatype, shape }: NamedTensor): number {
  const extents = shape.length === 0 ? 0 : sizeOfField(sizeOfExtents(shape))
  return sizeOfText(name) + sizeOfText(datatype) + extents
}

function sizeOfExtents(shape: NamedTensor['shape']): number {
  let size = 0
  for (const extent of shape) size += sizeOfInt64(extent)
  return size
}

function writeTensor(writer: WireWriter, tensor: NamedTensor): void {
  writer.byte(42)
  writer.varint(sizeOfTensor(tensor))
  writer.text(10, tensor.name)
  writer.text(18, tensor.datatype)
  if (tensor.shape.length === 0) return
  writer.byte(26)
  writer.varint(sizeOfExtents(tensor.shape))
  for (const extent of tensor.shape) writer.int64(extent)
}

function sizeOfOutput({ name, parameters }: { name: string; parameters?: Parameters }): number {
  return sizeOfText(name) + (parameters === undefined ? 0 : sizeOfParameters(parameters))
}

/** Bytes of all entries, with tags below 16. */
function sizeOfParameters(parameters: Parameters): number {
  let size = 0
  for (const [key, parameter] of parameters) size += sizeOfField(sizeOfEntry(key, parameter))
  return size
}

function writeParameters(writer: WireWriter, tag: number, parameters: Parameters): void {
  for (const [key, parameter] of parameters) {
    writer.byte(tag)
    writer.varint(sizeOfEntry(key, parameter))
    writer.text(10, key)
    writer.byte(18)
    writer.varint(sizeOfValue(parameter))
    writeValue(writer, parameter)
  }
}

function sizeOfEntry(key: string, parameter: Parameter): number {
  return sizeOfText(key) + sizeOfField(sizeOfValue(parameter))
}

function sizeOfValue(parameter: Parameter): number {
  switch (parameter.kind) {
    case 'bool':
      return 2
    case 'int64':
    case 'uint64':
      return 1 + Math.ceil(BigInt.asUintN(64, parameter.value | 1n).toString(2).length / 7)
    case 'string':
      return sizeOfField(Buffer.byteLength(parameter.value))
    case 'double':
      break
  }
  return 9
}

/** Members of a oneof are written even if they hold their default: which one is set is the message. */
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

/** A writer behind the header of gRPC's frame: not compressed, its length. */
function frameWriter(messageBytes: number): WireWriter {
  const writer = new WireWriter(FRAME_HEADER_BYTES + checkSize(messageBytes))
  writer.byte(0)
  writer.position = writer.bytes.writeUInt32BE(messageBytes, writer.position)
  return writer
}

function checkSize(sizeBytes: number): number {
  if (sizeBytes <= MAX_MESSAGE_BYTES) return sizeBytes
  const text = `message has ${sizeBytes} bytes, want at most ${MAX_MESSAGE_BYTES}`
  throw new ServeError('MESSAGE_TOO_LARGE', text)
}
