import { ServeError } from '@tutti/errors'

/*
 * The protobuf wire format, as far as ModelProto needs it. A reader of our own because a schema library would decode the
 * weights, and because unknown fields must be skipped, not refused.
 */

export const WIRE = { VARINT: 0, FIXED64: 1, LENGTH: 2, FIXED32: 5 } as const

const MAX_VARINT_BYTES = 10
const LOW_BITS = 0x7f
const CONTINUES = 0x80
const WIRE_BITS = 8

/** The longest header of a field: a tag and a length. */
export const MAX_HEADER_BYTES = 2 * MAX_VARINT_BYTES

/** A field's place: `start` and `end` delimit its value (without the length), `value` is set for varints. */
export interface FieldHeader {
  readonly field: number
  readonly wire: number
  readonly value: bigint
  readonly start: number
  readonly end: number
}

/** A field with its bytes. */
export interface Field extends FieldHeader {
  /** The value, a view; empty for a varint. */
  readonly bytes: Uint8Array
  /** The whole field with its tag, to be copied as it is; a view. */
  readonly raw: Uint8Array
}

/** @throws ServeError MODEL_LOAD_FAILED with `problem`. */
export function refuseModel(problem: string): never {
  throw new ServeError('MODEL_LOAD_FAILED', `not a valid ONNX model: ${problem}`)
}

function readVarint(bytes: Uint8Array, offset: number): { value: bigint; next: number } {
  let value = 0n
  for (let i = 0; i < MAX_VARINT_BYTES; i += 1) {
    const byte = bytes[offset + i]
    if (byte === undefined) refuseModel('a number is cut short')
    value |= BigInt(byte & LOW_BITS) << BigInt(7 * i)
    if ((byte & CONTINUES) === 0) return { value, next: offset + i + 1 }
  }
  return refuseModel(`a number is longer than ${MAX_VARINT_BYTES} bytes`)
}

function valueSize(wire: number): number {
  if (wire === WIRE.FIXED64) return 8
  if (wire === WIRE.FIXED32) return 4
  return refuseModel(`wire type ${wire}, want 0, 1, 2 or 5`)
}

/**
 * Reads one field's header.
 *
 * @param bytes - holds at least the header; positions are counted from its first byte.
 * @param limit - the value must end at or before this position.
 */
export function readHeader(bytes: Uint8Array, offset: number, limit: number): FieldHeader {
  const tag = readVarint(bytes, offset)
  const field = Number(tag.value >> 3n)
  const wire = Number(tag.value % BigInt(WIRE_BITS))
  if (field < 1 || field > 2 ** 29) refuseModel(`field number ${field}`)
  if (wire === WIRE.VARINT) {
    const { value, next } = readVarint(bytes, tag.next)
    if (next > limit) refuseModel('a number passes the end of its message')
    return { field, wire, value, start: next, end: next }
  }
  let start = tag.next
  let size: number
  if (wire === WIRE.LENGTH) {
    const length = readVarint(bytes, tag.next)
    start = length.next
    if (length.value > BigInt(Number.MAX_SAFE_INTEGER)) refuseModel('a length is over 2^53')
    size = Number(length.value)
  } else size = valueSize(wire)
  const end = start + size
  if (end > limit)
    refuseModel(`field ${field} passes the end of its message by ${end - limit} bytes`)
  return { field, wire, value: 0n, start, end }
}

/** Walks the fields of a message that is wholly in memory. */
export function* readFields(bytes: Uint8Array): Generator<Field> {
  let offset = 0
  while (offset < bytes.byteLength) {
    const header = readHeader(bytes, offset, bytes.byteLength)
    yield {
      ...header,
      bytes: bytes.subarray(header.start, header.end),
      raw: bytes.subarray(offset, header.end),
    }
    offset = header.end
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Text of a string field. @throws ServeError MODEL_LOAD_FAILED if the field is no string or not UTF-8. */
export function readText(field: Field, what: string): string {
  if (field.wire !== WIRE.LENGTH) refuseModel(`${what} is not a string`)
  try {
    return utf8.decode(field.bytes)
  } catch {
    return refuseModel(`${what} is not UTF-8`)
  }
}

/** @throws ServeError MODEL_LOAD_FAILED if the field has no length, so that it is no message, string or bytes. */
export function requireMessage(field: FieldHeader, what: string): void {
  if (field.wire !== WIRE.LENGTH) refuseModel(`${what} is not a message`)
}

/** The bytes of an embedded message. @throws ServeError MODEL_LOAD_FAILED if the field is no message. */
export function readMessage(field: Field, what: string): Uint8Array {
  requireMessage(field, what)
  return field.bytes
}

/** An int64 as a number. @throws ServeError MODEL_LOAD_FAILED if it is no varint or lies outside +-(2^53 - 1). */
export function readInteger(field: FieldHeader, what: string): number {
  if (field.wire !== WIRE.VARINT) refuseModel(`${what} is not a number`)
  const value = BigInt.asIntN(64, field.value)
  const number = Number(value)
  if (!Number.isSafeInteger(number)) refuseModel(`${what} is ${value}, want less than 2^53`)
  return number
}

/** int64 elements of a repeated field, packed or not. */
export function readIntegers(field: Field, what: string): number[] {
  if (field.wire === WIRE.VARINT) return [readInteger(field, what)]
  if (field.wire !== WIRE.LENGTH) refuseModel(`${what} is not a list of numbers`)
  const out: number[] = []
  let offset = 0
  while (offset < field.bytes.byteLength) {
    const { value, next } = readVarint(field.bytes, offset)
    out.push(readInteger({ field: 0, wire: WIRE.VARINT, value, start: 0, end: 0 }, what))
    offset = next
  }
  return out
}

/** Encodes an unsigned number, or a negative one as its 64-bit two's complement. */
export function writeVarint(value: number | bigint): Uint8Array {
  let rest = BigInt.asUintN(64, BigInt(value))
  const out: number[] = []
  while (rest > BigInt(LOW_BITS)) {
    out.push(Number(rest & BigInt(LOW_BITS)) | CONTINUES)
    rest >>= 7n
  }
  out.push(Number(rest))
  return Uint8Array.from(out)
}

/** Joins chunks. Copies. */
export function joinBytes(chunks: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  let size = 0
  for (const chunk of chunks) size += chunk.byteLength
  const out = new Uint8Array(size)
  let offset = 0
  for (const chunk of chunks) {
    out.set(chunk, offset)
    offset += chunk.byteLength
  }
  return out
}

/** A varint field. */
export function writeNumber(field: number, value: number | bigint): Uint8Array {
  return joinBytes([writeVarint(field * WIRE_BITS + WIRE.VARINT), writeVarint(value)])
}

/** A string, bytes or message field. */
export function writeBytes(field: number, value: string | Uint8Array): Uint8Array {
  const bytes = typeof value === 'string' ? new TextEncoder().encode(value) : value
  return joinBytes([
    writeVarint(field * WIRE_BITS + WIRE.LENGTH),
    writeVarint(bytes.byteLength),
    bytes,
  ])
}
