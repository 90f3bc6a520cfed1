import { ServeError } from '@tutti/errors'
import { DATATYPES, type Datatype, elementCount, isDatatype, type Shape } from '@tutti/tensor'

/**
 * Operations of frames; python/tutti_worker/frames.py has the same numbers. Those below 32 go to the instance, the others
 * come from it.
 */
export const OP = {
  INIT: 1,
  EXECUTE: 2,
  CANCEL: 3,
  REPLY: 4,
  REGION: 5,
  INFER_RESPONSE: 6,
  FINALIZE: 7,
  CREDIT: 9,
  ASK_READY: 10,
  MAP: 11,
  UNMAP: 12,
  READY: 33,
  FAILED: 34,
  RESULT: 35,
  SEND: 36,
  CALL: 37,
  NOTE: 38,
  GROW: 39,
  INFER: 40,
  INFER_END: 41,
  RELEASE: 42,
  FINALIZED: 43,
  ABANDONED: 45,
  TAKEN: 46,
  IS_READY: 47,
  METRIC: 48,
  MAPPED: 49,
  RETURNED: 50,
  INITIALIZING: 51,
} as const

const MAGIC = 0x5454
/** Bytes of a frame's header: u16 magic, u16 operation, u32 bytes of meta, u64 bytes of payload, u64 id. */
export const HEADER_BYTES = 24
/** u8 datatype, u8 rank, u8 place, u8, u32 bytes of the name, u64 offset in the arena, u64 bytes; then the dims and the name. */
const TENSOR_BYTES = 24
const RESULT_BYTES = 32
/** u64 nanoseconds of the request's inputs, u64 nanoseconds of the outputs; a response follows. */
const SENT_BYTES = 16
/** u8 kind, u8 flags, u16 tensors, u32 bytes of their records, u32 bytes of JSON. */
const RESPONSE_BYTES = 12
const MOST_U16 = 65_535
const HIGH = 2 ** 32

/**
 * Places of a tensor's bytes: in the frame's payload, one after the other, or in the arena. Offsets beyond the arena's end are in
 * arenas of other instances.
 */
export const IN_PAYLOAD = 0
export const IN_ARENA = 1

/** Received frame. */
export interface InstanceFrame {
  readonly op: number
  readonly id: number
  readonly meta: Buffer
  /** The reader's own memory; empty if there is none. */
  readonly payload: Buffer
}

export interface InstanceFrameHeader {
  readonly op: number
  readonly id: number
  readonly metaBytes: number
  readonly payloadBytes: number
}

/** Tensor of a frame, with the place of its bytes. */
export interface TensorPlace {
  readonly name: string
  readonly datatype: Datatype
  readonly shape: Shape
  readonly place: typeof IN_PAYLOAD | typeof IN_ARENA
  /** Offset in the arena, in bytes. */
  readonly offset: number
  readonly size: number
}

/** Makes the error for a frame with a wrong content. The instance that wrote it can no longer be trusted. */
export function badFrame(problem: string): ServeError {
  return new ServeError('MALFORMED_MESSAGE', `the process of the model wrote ${problem}`)
}

const NAMES = new Map<number, Datatype>(
  Object.keys(DATATYPES)
    .filter(isDatatype)
    .map((name) => [DATATYPES[name].number, name]),
)

/** Numbers of 64 bits that stay below 2^53. */
function writeU64(bytes: Buffer, value: number, at: number): void {
  bytes.writeUInt32LE(value % HIGH, at)
  bytes.writeUInt32LE(Math.floor(value / HIGH), at + 4)
}

function readU64(bytes: Buffer, at: number): number {
  return bytes.readUInt32LE(at) + bytes.readUInt32LE(at + 4) * HIGH
}

export function writeHeader(bytes: Buffer, header: InstanceFrameHeader): void {
  bytes.writeUInt16LE(MAGIC, 0)
  bytes.writeUInt16LE(header.op, 2)
  bytes.writeUInt32LE(header.metaBytes, 4)
  writeU64(bytes, header.payloadBytes, 8)
  writeU64(bytes, header.id, 16)
}

/** Reads the header of a frame. @throws ServeError MALFORMED_MESSAGE if no frame begins at this position. */
export function readHeader(bytes: Buffer, at: number): InstanceFrameHeader {
  const magic = bytes.readUInt16LE(at)
  if (magic !== MAGIC) throw badFrame(`0x${magic.toString(16)} where a frame begins`)
  return {
    op: bytes.readUInt16LE(at + 2),
    metaBytes: bytes.readUInt32LE(at + 4),
    payloadBytes: readU64(bytes, at + 8),
    id: readU64(bytes, at + 16),
  }
}

/** Makes a whole frame without payload. @param value - written as JSON; absent: no meta. */
export function plainFrame(op: number, id: number, value?: unknown): Buffer {
  const meta = value === undefined ? Buffer.alloc(0) : Buffer.from(JSON.stringify(value))
  const frame = Buffer.allocUnsafe(HEADER_BYTES + meta.length)
  writeHeader(frame, { op, id, metaBytes: meta.length, payloadBytes: 0 })
  meta.copy(frame, HEADER_BYTES)
  return frame
}

/** Writes meta of unknown length behind a header that is filled in at the end. */
export class FrameWriter {
  #bytes = Buffer.allocUnsafe(1024)
  #at = HEADER_BYTES
  #payloadBytes = 0

  u32(...values: readonly number[]): this {
    this.#reserve(values.length * 4)
    for (const value of values) this.#at = this.#bytes.writeUInt32LE(value, this.#at)
    return this
  }

  u64(...values: readonly number[]): this {
    this.#reserve(values.length * 8)
    for (const value of values) {
      writeU64(this.#bytes, value, this.#at)
      this.#at += 8
    }
    return this
  }

  /** Writes a request of EXECUTE. @param json - '' for none. */
  request(key: number, tensors: readonly TensorPlace[], json: string): this {
    this.u64(key)
    const at = this.#at
    const bytes = this.u32(tensors.length, 0).#records(tensors, json, at + 4)
    // Where they are too many to say, the reader reads them one by one.
    this.#bytes.writeUInt16LE(bytes > MOST_U16 ? 0 : bytes, at + 2)
    return this
  }

  /** Writes the response of INFER_RESPONSE. @param json - '' for none. */
  response(flags: number, tensors: readonly TensorPlace[], json: string): this {
    this.u32((flags << 8) + tensors.length * 65_536, 0, 0)
    const at = this.#at
    const bytes = this.#records(tensors, json, at - 4)
    this.#bytes.writeUInt32LE(bytes, at - 8)
    return this
  }

  /** Writes bytes of payload into the frame; copies, so they should be small. */
  payload(parts: readonly Uint8Array[], size: number): this {
    this.#reserve(size)
    for (const part of parts) {
      this.#bytes.set(part, this.#at)
      this.#at += part.byteLength
    }
    this.#payloadBytes += size
    return this
  }

  /**
   * Ends the frame.
   *
   * @param more - bytes of payload that the caller sends after it.
   * @returns the frame so far; the writer must not be used again.
   */
  finish(op: number, id: number, more: number): Buffer {
    const payloadBytes = this.#payloadBytes + more
    const metaBytes = this.#at - HEADER_BYTES - this.#payloadBytes
    writeHeader(this.#bytes, { op, id, metaBytes, payloadBytes })
    return this.#bytes.subarray(0, this.#at)
  }

  /** @param jsonAt - where the size of the JSON is to be. @returns the bytes of the tensors' records. */
  #records(tensors: readonly TensorPlace[], json: string, jsonAt: number): number {
    const start = this.#at
    for (const tensor of tensors) this.#tensor(tensor)
    const size = this.#at - start
    if (json === '') return size
    const jsonBytes = Buffer.byteLength(json)
    this.#bytes.writeUInt32LE(jsonBytes, jsonAt)
    this.#text(json, jsonBytes)
    return size
  }

  #tensor(tensor: TensorPlace): void {
    const { name, shape } = tensor
    const nameBytes = Buffer.byteLength(name)
    this.#reserve(TENSOR_BYTES + shape.length * 8 + nameBytes)
    const bytes = this.#bytes
    bytes[this.#at] = DATATYPES[tensor.datatype].number
    bytes[this.#at + 1] = shape.length
    bytes[this.#at + 2] = tensor.place
    bytes[this.#at + 3] = 0
    bytes.writeUInt32LE(nameBytes, this.#at + 4)
    writeU64(bytes, tensor.offset, this.#at + 8)
    writeU64(bytes, tensor.size, this.#at + 16)
    this.#at += TENSOR_BYTES
    for (const extent of shape) {
      writeU64(bytes, extent, this.#at)
      this.#at += 8
    }
    this.#text(name, nameBytes)
  }

  #text(text: string, size: number): this {
    if (size === 0) return this
    this.#reserve(size)
    this.#at += this.#bytes.write(text, this.#at)
    return this
  }

  #reserve(size: number): void {
    if (this.#at + size <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(this.#at + size, this.#bytes.length * 2))
    this.#bytes.copy(larger, 0, 0, this.#at)
    this.#bytes = larger
  }
}

/** Response of a model's response sender, with its times in nanoseconds. */
export interface WireSent {
  /** Time to make the inputs of the request, in nanoseconds. */
  readonly inputNs: number
  readonly outputNs: number
  readonly response: WireResponse
}

/** Response as an instance wrote it. It can be read, but nothing else is checked. */
export interface WireResponse {
  /** False if there is no response here: the request answers through a sender, or a stream ends without a further response. */
  readonly isPresent: boolean
  /** True if the model wants the request again (RESCHEDULE). */
  readonly isAgain: boolean
  readonly isFinal: boolean
  readonly tensors: readonly TensorPlace[]
  /** JSON text; '' for none. */
  readonly json: string
}

export interface WireResult {
  /** True if the model still uses some of the inputs. A RELEASE follows when it no longer does. */
  readonly isRetained: boolean
  /** True if the model still uses inputs in arenas of other instances. A RETURNED follows when it no longer does. */
  readonly keepsLent: boolean
  /** True if the model has written into such an input, in this execution or an earlier one. */
  readonly writesLent: boolean
  readonly inputNs: number
  readonly inferNs: number
  readonly outputNs: number
  readonly responses: readonly WireResponse[]
}

/** Tensors that the bytes of a response's records describe, as long as none is in the arena: the same each time for most models. */
const knownRecords = new Map<string, readonly TensorPlace[]>()
const MOST_KNOWN = 256
const MOST_KNOWN_BYTES = 1024

/** Reads the meta of a frame from an instance. Every read throws ServeError MALFORMED_MESSAGE rather than read past the end. */
export class FrameMetaReader {
  readonly #meta: Buffer
  #at = 0

  constructor(meta: Buffer) {
    this.#meta = meta
  }

  result(): WireResult {
    const at = this.#take(RESULT_BYTES)
    const meta = this.#meta
    const count = meta.readUInt32LE(at)
    // Each takes some bytes, so this bounds what follows.
    if (count > meta.length)
      throw badFrame(`a result of ${count} responses in ${meta.length} bytes`)
    const responses: WireResponse[] = []
    for (let i = 0; i < count; i += 1) responses.push(this.response())
    return {
      isRetained: (meta.readUInt32LE(at + 4) & 1) === 1,
      keepsLent: (meta.readUInt32LE(at + 4) & 2) === 2,
      writesLent: (meta.readUInt32LE(at + 4) & 4) === 4,
      inputNs: readU64(meta, at + 8),
      inferNs: readU64(meta, at + 16),
      outputNs: readU64(meta, at + 24),
      responses,
    }
  }

  /** Reads a response of a response sender. */
  sent(): WireSent {
    const at = this.#take(SENT_BYTES)
    const times = { inputNs: readU64(this.#meta, at), outputNs: readU64(this.#meta, at + 8) }
    return { ...times, response: this.response() }
  }

  response(): WireResponse {
    const at = this.#take(RESPONSE_BYTES)
    const meta = this.#meta
    const tensors = this.#tensors(meta.readUInt16LE(at + 2), meta.readUInt32LE(at + 4))
    return {
      isPresent: meta[at] === 0,
      isAgain: meta[at] === 2,
      isFinal: ((meta[at + 1] ?? 0) & 1) === 1,
      tensors,
      json: this.#text(meta.readUInt32LE(at + 8)),
    }
  }

  #tensors(count: number, size: number): readonly TensorPlace[] {
    const at = this.#at
    const end = at + size
    const records = size > MOST_KNOWN_BYTES ? undefined : this.#meta.toString('latin1', at, end)
    const known = records === undefined ? undefined : knownRecords.get(records)
    if (known?.length === count) {
      this.#at = end
      return known
    }
    const tensors: TensorPlace[] = []
    for (let i = 0; i < count; i += 1) tensors.push(this.#tensor())
    if (this.#at !== end) throw badFrame(`${size} bytes of tensors that take ${this.#at - at}`)
    if (records !== undefined && tensors.every(({ place }) => place === IN_PAYLOAD)) {
      if (knownRecords.size >= MOST_KNOWN) knownRecords.clear()
      knownRecords.set(records, tensors)
    }
    return tensors
  }

  #tensor(): TensorPlace {
    const at = this.#take(TENSOR_BYTES)
    const meta = this.#meta
    const datatype = NAMES.get(meta[at] ?? 0)
    const place = meta[at + 2] === IN_ARENA ? IN_ARENA : IN_PAYLOAD
    if (datatype === undefined) throw badFrame(`datatype ${meta[at]}`)
    const shape = Array.from({ length: meta[at + 1] ?? 0 }, () => readU64(meta, this.#take(8)))
    const name = this.#text(meta.readUInt32LE(at + 4))
    const [offset, size] = [readU64(meta, at + 8), readU64(meta, at + 16)]
    return checkSize({ name, datatype, shape, place, offset, size })
  }

  #text(size: number): string {
    const at = this.#take(size)
    return size === 0 ? '' : this.#meta.toString('utf8', at, at + size)
  }

  #take(size: number): number {
    const at = this.#at
    if (at + size > this.#meta.length) throw badFrame('a frame that ends too early')
    this.#at += size
    return at
  }
}

/** @throws ServeError MALFORMED_MESSAGE if a tensor's bytes are not those of its datatype and shape. */
function checkSize(tensor: TensorPlace): TensorPlace {
  const { name, datatype, shape, size } = tensor
  const { itemSize } = DATATYPES[datatype]
  if (itemSize === null || elementCount(shape) * itemSize === size) return tensor
  throw badFrame(`${size} bytes for tensor "${name}", ${datatype} [${shape.join(',')}]`)
}
