import { ServeError } from '@tutti/errors'
import { WIRE_BYTES, WIRE_FIXED32, WIRE_FIXED64, WIRE_VARINT, WireReader } from '@tutti/tensor'

/** The longest header of a field: a tag and a length, ten bytes each. */
export const MAX_HEADER_BYTES = 20

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

function invalidModel(problem: string, cause?: unknown): ServeError {
  return new ServeError('MODEL_LOAD_FAILED', `not a valid ONNX model: ${problem}`, { cause })
}

/** @throws ServeError MODEL_LOAD_FAILED with `problem`. */
export function refuseModel(problem: string): never {
  throw invalidModel(problem)
}

/** What a model is refused with when reading it has thrown `error`. */
export function toModelError(error: unknown): ServeError {
  if (!(error instanceof ServeError)) {
    return new ServeError('MODEL_LOAD_FAILED', 'the model file cannot be read', { cause: error })
  }
  return error.reason === 'MALFORMED_MESSAGE' ? invalidModel(error.message, error) : error
}

function valueBytes(reader: WireReader, wire: number): number {
  if (wire === WIRE_BYTES) return reader.length()
  if (wire === WIRE_FIXED64) return 8
  if (wire === WIRE_FIXED32) return 4
  return refuseModel(`wire type ${wire}, want 0, 1, 2 or 5`)
}

/**
 * Reads one field's header; the bytes of its value need not be there.
 *
 * @param limit - the value must end at or before this position.
 */
export function readHeader(reader: WireReader, limit: number): FieldHeader {
  const tag = reader.tag()
  const field = tag >>> 3
  const wire = tag & 7
  const value = wire === WIRE_VARINT ? reader.int64() : 0n
  const size = wire === WIRE_VARINT ? 0 : valueBytes(reader, wire)
  const start = reader.position
  const end = start + size
  if (end > limit)
    refuseModel(`field ${field} passes the end of its message by ${end - limit} bytes`)
  return { field, wire, value, start, end }
}

/** Walks the fields of a message that is wholly in memory. */
export function* readFields(bytes: Uint8Array): Generator<Field> {
  const reader = new WireReader(bytes)
  while (reader.hasMore()) {
    const from = reader.position
    const header = readHeader(reader, bytes.byteLength)
    reader.position = header.end
    yield {
      ...header,
      bytes: bytes.subarray(header.start, header.end),
      raw: bytes.subarray(from, header.end),
    }
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Text of a string field. @throws ServeError MODEL_LOAD_FAILED if the field is no string or not UTF-8. */
export function readText(field: Field, what: string): string {
  if (field.wire !== WIRE_BYTES) refuseModel(`${what} is not a string`)
  try {
    return utf8.decode(field.bytes)
  } catch {
    return refuseModel(`${what} is not UTF-8`)
  }
}

/** The field. @throws ServeError MODEL_LOAD_FAILED if it has no length, so that it is no message, string or bytes. */
export function requireMessage<F extends FieldHeader>(field: F, what: string): F {
  if (field.wire !== WIRE_BYTES) refuseModel(`${what} is not a message`)
  return field
}

function toInteger(value: bigint, what: string): number {
  const number = Number(value)
  if (!Number.isSafeInteger(number)) refuseModel(`${what} is ${value}, want less than 2^53`)
  return number
}

/** An int64 as a number. @throws ServeError MODEL_LOAD_FAILED if it is no varint or lies outside +-(2^53 - 1). */
export function readInteger(field: FieldHeader, what: string): number {
  if (field.wire !== WIRE_VARINT) refuseModel(`${what} is not a number`)
  return toInteger(field.value, what)
}

/** Integers of a repeated field, packed or not, as int64. */
export function readBigints(field: Field, what: string): bigint[] {
  if (field.wire === WIRE_VARINT) return [field.value]
  if (field.wire !== WIRE_BYTES) refuseModel(`${what} is not a list of numbers`)
  const reader = new WireReader(field.bytes)
  const out: bigint[] = []
  while (reader.hasMore()) out.push(reader.int64())
  return out
}

/** As `readBigints`. @throws ServeError MODEL_LOAD_FAILED if one lies outside +-(2^53 - 1). */
export function readIntegers(field: Field, what: string): number[] {
  return readBigints(field, what).map((value) => toInteger(value, what))
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
