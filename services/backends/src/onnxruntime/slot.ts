import { assert } from '@tutti/errors'

/*
 * A slot is the one ArrayBuffer that carries an execution to a session thread and back. It begins with a header of
 * float64 numbers, so that the message itself is the bare buffer and no object is cloned. Tensor data follows, each tensor on a 64-byte boundary.
 *
 * Request: inputs, outputs, then per input {index, rank, byteOffset, byteLength, extents...}, then per output its index.
 * Reply:   inferStartNs, inferEndNs, outputs, then per output {index, rank, byteOffset, byteLength, extents...};
 *          a byteOffset of -1 says that the data is in a buffer of its own, in order, behind the slot.
 */

const NUMBER_BYTES = 8
const TENSOR_NUMBERS = 4
const REQUEST_NUMBERS = 2
const REPLY_NUMBERS = 3
/** ONNX Runtime's own allocation alignment, enough for its vector loads. */
const ALIGNMENT = 64

/** Where a tensor of a slot lies. `index` counts in the order of the thread's inputs or outputs. */
export interface SlotTensor {
  readonly index: number
  readonly dims: readonly number[]
  /** -1: in a buffer of its own. */
  readonly byteOffset: number
  readonly byteLength: number
}

export interface SlotRequest {
  readonly inputs: readonly SlotTensor[]
  readonly outputs: readonly number[]
}

export interface SlotReply {
  readonly inferStartNs: number
  readonly inferEndNs: number
  readonly outputs: readonly SlotTensor[]
}

export interface SlotTensorSize {
  readonly index: number
  readonly dims: readonly number[]
  readonly byteLength: number
}

/** Rounds up to the next tensor boundary. */
export function alignOffset(offset: number): number {
  return Math.ceil(offset / ALIGNMENT) * ALIGNMENT
}

function tensorNumbers(tensors: readonly { readonly dims: readonly number[] }[]): number {
  let count = 0
  for (const tensor of tensors) count += TENSOR_NUMBERS + tensor.dims.length
  return count
}

function placeTensors(
  tensors: readonly SlotTensorSize[],
  start: number,
): { tensors: SlotTensor[]; size: number } {
  let offset = start
  const placed = tensors.map((tensor) => {
    const byteOffset = alignOffset(offset)
    offset = byteOffset + tensor.byteLength
    return { ...tensor, byteOffset }
  })
  return { tensors: placed, size: alignOffset(offset) }
}

/** Plans where the inputs of a request go. `size` is what the slot must hold at least, in bytes. */
export function planRequest(
  inputs: readonly SlotTensorSize[],
  outputs: readonly number[],
): { request: SlotRequest; size: number } {
  const numbers = REQUEST_NUMBERS + tensorNumbers(inputs) + outputs.length
  const { tensors, size } = placeTensors(inputs, numbers * NUMBER_BYTES)
  return { request: { inputs: tensors, outputs }, size }
}

/** Bytes that the header of a reply takes. */
export function replyHeaderBytes(outputs: readonly { readonly dims: readonly number[] }[]): number {
  return (REPLY_NUMBERS + tensorNumbers(outputs)) * NUMBER_BYTES
}

function writeTensor(header: Float64Array, at: number, tensor: SlotTensor): number {
  header[at] = tensor.index
  header[at + 1] = tensor.dims.length
  header[at + 2] = tensor.byteOffset
  header[at + 3] = tensor.byteLength
  header.set(tensor.dims, at + TENSOR_NUMBERS)
  return at + TENSOR_NUMBERS + tensor.dims.length
}

function numberAt(header: Float64Array, at: number): number {
  const value = header[at]
  assert(value !== undefined, 'a slot header is cut short')
  return value
}

function readTensor(header: Float64Array, at: number): { tensor: SlotTensor; next: number } {
  const rank = numberAt(header, at + 1)
  const start = at + TENSOR_NUMBERS
  const tensor = {
    index: numberAt(header, at),
    dims: Array.from(header.subarray(start, start + rank)),
    byteOffset: numberAt(header, at + 2),
    byteLength: numberAt(header, at + 3),
  }
  return { tensor, next: start + rank }
}

function headerOf(slot: ArrayBuffer): Float64Array {
  return new Float64Array(slot, 0, Math.floor(slot.byteLength / NUMBER_BYTES))
}

function readTensors(
  header: Float64Array,
  start: number,
  count: number,
): { tensors: SlotTensor[]; next: number } {
  const tensors: SlotTensor[] = []
  let at = start
  for (let i = 0; i < count; i += 1) {
    const { tensor, next } = readTensor(header, at)
    tensors.push(tensor)
    at = next
  }
  return { tensors, next: at }
}

export function writeRequest(slot: ArrayBuffer, request: SlotRequest): void {
  const header = headerOf(slot)
  header[0] = request.inputs.length
  header[1] = request.outputs.length
  let at = REQUEST_NUMBERS
  for (const input of request.inputs) at = writeTensor(header, at, input)
  header.set(request.outputs, at)
}

export function readRequest(slot: ArrayBuffer): SlotRequest {
  const header = headerOf(slot)
  const { tensors, next } = readTensors(header, REQUEST_NUMBERS, numberAt(header, 0))
  return {
    inputs: tensors,
    outputs: Array.from(header.subarray(next, next + numberAt(header, 1))),
  }
}

export function writeReply(slot: ArrayBuffer, reply: SlotReply): void {
  const header = headerOf(slot)
  header[0] = reply.inferStartNs
  header[1] = reply.inferEndNs
  header[2] = reply.outputs.length
  let at = REPLY_NUMBERS
  for (const output of reply.outputs) at = writeTensor(header, at, output)
}

export function readReply(slot: ArrayBuffer): SlotReply {
  const header = headerOf(slot)
  const { tensors } = readTensors(header, REPLY_NUMBERS, numberAt(header, 2))
  return { inferStartNs: numberAt(header, 0), inferEndNs: numberAt(header, 1), outputs: tensors }
}

const NS_PER_SECOND = 1e9

/** Monotonic nanoseconds, the same clock on every thread of the process. */
export function monotonicNs(): number {
  const [seconds, ns] = process.hrtime()
  return seconds * NS_PER_SECOND + ns
}
