import { assert } from '@tutti/errors'

/*
 * A slot is the one ArrayBuffer that carries runs to a session thread and their replies back. Its first number counts the
 * records; a record stands for one run, begins on a 64-byte boundary with float64 numbers, and ends with tensor data, each
 * tensor on a 64-byte boundary. The message is the bare buffer: structured clone of even a small object costs more than a
 * 16-float model takes, and one message for many runs is what makes such models cheap.
 *
 * Request: recordBytes, inputs, outputs, then per input {index, rank, offset, byteLength, extents...}, then per output its
 *          index.
 * Reply:   recordBytes, beginNs, inferStartNs, inferEndNs, endNs, outputs, then per output {index, rank, offset,
 *          byteLength, extents...}. Offsets count from the record; -1 says that the data is in a buffer of its own, the
 *          next one behind the slot. -1 outputs say that the run failed, and its text is the next one behind the slot.
 */

const NUMBER_BYTES = 8
const TENSOR_NUMBERS = 4
const REQUEST_NUMBERS = 3
const REPLY_NUMBERS = 6
/** ONNX Runtime's own allocation alignment, enough for its vector loads. */
const ALIGNMENT = 64

/** What a slot takes besides its records. */
export const SLOT_HEADER_BYTES = ALIGNMENT

/** In place of an offset: the data is in a buffer of its own. */
export const APART = -1

/** Where a tensor lies: from the start of its record when it is written, from the start of the slot when it is read. */
export interface SlotTensor {
  readonly index: number
  readonly dims: readonly number[]
  readonly byteOffset: number
  readonly byteLength: number
}

export interface SlotRequest {
  readonly inputs: readonly SlotTensor[]
  readonly outputs: readonly number[]
}

/** Nanoseconds of the clock that all threads share: taken up, run begun, run ended, outputs ready. */
export interface SlotTimes {
  readonly beginNs: number
  readonly inferStartNs: number
  readonly inferEndNs: number
  readonly endNs: number
}

export interface SlotReply extends SlotTimes {
  /** Undefined if the run failed. */
  readonly outputs: readonly SlotTensor[] | undefined
}

export interface SlotTensorSize {
  readonly index: number
  readonly dims: readonly number[]
  readonly byteLength: number
}

/** A record with its size, in bytes. */
export interface Planned<T> {
  readonly record: T
  readonly size: number
}

function align(offset: number): number {
  return Math.ceil(offset / ALIGNMENT) * ALIGNMENT
}

function tensorNumbers(tensors: readonly { readonly dims: readonly number[] }[]): number {
  let count = 0
  for (const tensor of tensors) count += TENSOR_NUMBERS + tensor.dims.length
  return count
}

/** Plans where the inputs of a request go. */
export function planRequest(
  inputs: readonly SlotTensorSize[],
  outputs: readonly number[],
): Planned<SlotRequest> {
  let end = align((REQUEST_NUMBERS + tensorNumbers(inputs) + outputs.length) * NUMBER_BYTES)
  const placed = inputs.map(({ index, dims, byteLength }) => {
    const byteOffset = end
    end = align(end + byteLength)
    return { index, dims, byteOffset, byteLength }
  })
  return { record: { inputs: placed, outputs }, size: end }
}

/** Plans where the outputs of a reply go: those above `inlineBytes` in buffers of their own. */
export function planOutputs(
  outputs: readonly SlotTensorSize[] | undefined,
  inlineBytes: number,
): Planned<SlotReply['outputs']> {
  let end = align((REPLY_NUMBERS + tensorNumbers(outputs ?? [])) * NUMBER_BYTES)
  const record = outputs?.map(({ index, dims, byteLength }) => {
    if (byteLength > inlineBytes) return { index, dims, byteOffset: APART, byteLength }
    const byteOffset = end
    end = align(end + byteLength)
    return { index, dims, byteOffset, byteLength }
  })
  return { record, size: end }
}

function writeTensor(numbers: Float64Array, at: number, tensor: SlotTensor): number {
  numbers[at] = tensor.index
  numbers[at + 1] = tensor.dims.length
  numbers[at + 2] = tensor.byteOffset
  numbers[at + 3] = tensor.byteLength
  let next = at + TENSOR_NUMBERS
  for (const extent of tensor.dims) numbers[next++] = extent
  return next
}

/** Writes the records of one slot, one behind the other. Tensor data is the caller's to copy. */
export class SlotWriter {
  readonly bytes: Uint8Array
  readonly #numbers: Float64Array
  #offset = SLOT_HEADER_BYTES
  #count = 0

  constructor(slot: ArrayBuffer) {
    this.bytes = new Uint8Array(slot)
    this.#numbers = toNumbers(slot)
  }

  /** @returns where the record begins; its tensors' offsets count from there. */
  addRequest({ record, size }: Planned<SlotRequest>): number {
    const numbers = this.#numbers
    const at = this.#offset / NUMBER_BYTES
    numbers[at] = size
    numbers[at + 1] = record.inputs.length
    numbers[at + 2] = record.outputs.length
    let next = at + REQUEST_NUMBERS
    for (const input of record.inputs) next = writeTensor(numbers, next, input)
    for (const output of record.outputs) numbers[next++] = output
    return this.#end(size)
  }

  /** @returns where the record begins; its tensors' offsets count from there. */
  addReply(times: SlotTimes, { record, size }: Planned<SlotReply['outputs']>): number {
    const numbers = this.#numbers
    const at = this.#offset / NUMBER_BYTES
    numbers[at] = size
    numbers[at + 1] = times.beginNs
    numbers[at + 2] = times.inferStartNs
    numbers[at + 3] = times.inferEndNs
    numbers[at + 4] = times.endNs
    numbers[at + 5] = record?.length ?? -1
    let next = at + REPLY_NUMBERS
    for (const output of record ?? []) next = writeTensor(numbers, next, output)
    return this.#end(size)
  }

  #end(size: number): number {
    const begin = this.#offset
    this.#offset += size
    this.#count += 1
    this.#numbers[0] = this.#count
    return begin
  }
}

/** Reads the numbers of one record. */
class RecordReader {
  readonly #numbers: Float64Array
  readonly #begin: number
  #at: number

  constructor(numbers: Float64Array, begin: number) {
    this.#numbers = numbers
    this.#begin = begin
    this.#at = begin / NUMBER_BYTES
  }

  next(): number {
    const value = this.#numbers[this.#at]
    assert(value !== undefined, 'a slot record is cut short')
    this.#at += 1
    return value
  }

  list(count: number): number[] {
    const values: number[] = []
    for (let i = 0; i < count; i += 1) values.push(this.next())
    return values
  }

  tensors(count: number): SlotTensor[] {
    const tensors: SlotTensor[] = []
    for (let i = 0; i < count; i += 1) {
      const index = this.next()
      const rank = this.next()
      const offset = this.next()
      const byteLength = this.next()
      const byteOffset = offset === APART ? APART : this.#begin + offset
      tensors.push({ index, dims: this.list(rank), byteOffset, byteLength })
    }
    return tensors
  }
}

function toNumbers(slot: ArrayBuffer): Float64Array {
  return new Float64Array(slot, 0, Math.floor(slot.byteLength / NUMBER_BYTES))
}

function readRecords<T>(slot: ArrayBuffer, read: (reader: RecordReader) => T): T[] {
  const numbers = toNumbers(slot)
  const records: T[] = []
  const count = numbers[0] ?? 0
  let begin = SLOT_HEADER_BYTES
  for (let i = 0; i < count; i += 1) {
    const reader = new RecordReader(numbers, begin)
    begin += reader.next()
    records.push(read(reader))
  }
  return records
}

export function readRequests(slot: ArrayBuffer): SlotRequest[] {
  return readRecords(slot, (reader) => {
    const inputs = reader.next()
    const outputs = reader.next()
    return { inputs: reader.tensors(inputs), outputs: reader.list(outputs) }
  })
}

export function readReplies(slot: ArrayBuffer): SlotReply[] {
  return readRecords(slot, (reader) => {
    const beginNs = reader.next()
    const inferStartNs = reader.next()
    const inferEndNs = reader.next()
    const endNs = reader.next()
    const count = reader.next()
    const outputs = count < 0 ? undefined : reader.tensors(count)
    return { beginNs, inferStartNs, inferEndNs, endNs, outputs }
  })
}

const NS_PER_SECOND = 1e9

/** Monotonic nanoseconds, the same clock on every thread of the process. */
export function monotonicNs(): number {
  const [seconds, ns] = process.hrtime()
  return seconds * NS_PER_SECOND + ns
}
