import { ServeError } from '@tutti/errors'
import {
  DATATYPES,
  type Datatype,
  WIRE_BYTES,
  WIRE_FIXED32,
  WIRE_FIXED64,
  WIRE_VARINT,
  WireReader,
} from '@tutti/tensor'

/** The members of InferTensorContents, in the order in which Triton looks at them. `fallback` is what an error names. */
const MEMBERS = [
  { field: 1, wire: WIRE_VARINT, datatypes: ['BOOL'], fallback: 'BOOL' },
  { field: 2, wire: WIRE_VARINT, datatypes: ['INT8', 'INT16', 'INT32'], fallback: 'INT32' },
  { field: 3, wire: WIRE_VARINT, datatypes: ['INT64'], fallback: 'INT64' },
  { field: 4, wire: WIRE_VARINT, datatypes: ['UINT8', 'UINT16', 'UINT32'], fallback: 'UINT32' },
  { field: 5, wire: WIRE_VARINT, datatypes: ['UINT64'], fallback: 'UINT64' },
  { field: 6, wire: WIRE_FIXED32, datatypes: ['FP32'], fallback: 'FP32' },
  { field: 7, wire: WIRE_FIXED64, datatypes: ['FP64'], fallback: 'FP64' },
  { field: 8, wire: WIRE_BYTES, datatypes: ['BYTES'], fallback: 'BYTES' },
] as const satisfies readonly {
  readonly field: number
  readonly wire: number
  readonly datatypes: readonly Datatype[]
  readonly fallback: Datatype
}[]

type Member = (typeof MEMBERS)[number]

const LENGTH_BYTES = 4
const ANY_NUMBER = 2 ** 30 - 1

/** What typed contents turned out to be: raw bytes, or the reason why they are not (triton-semantics 4.7). */
export type ReadContents =
  /** `elements` of it were read one by one. */
  | { readonly kind: 'data'; readonly data: Uint8Array; readonly elements: number }
  | { readonly kind: 'mismatch'; readonly found: Datatype }
  | { readonly kind: 'several' }

/** The bytes of an element, of the wire types that all elements take alike. */
const FIXED_BYTES: Readonly<Record<number, number>> = { [WIRE_FIXED32]: 4, [WIRE_FIXED64]: 8 }

/** Is called with the reader standing before so many elements, which it reads: one, or all floats of a packed field. */
type Visit = (member: Member, reader: WireReader, count: number) => void

/** @param maxElements - that are visited one by one. @returns how many were. @throws ServeError MESSAGE_TOO_LARGE for more. */
function eachElement(contents: Uint8Array, maxElements: number, visit: Visit): number {
  const reader = new WireReader(contents, maxElements)
  let elements = 0
  while (reader.hasMore()) {
    const tag = reader.tag()
    const member = MEMBERS[(tag >>> 3) - 1]
    const wire = tag & 7
    elements += 1
    if (member?.wire === wire) visit(member, reader, 1)
    else if (member !== undefined && wire === WIRE_BYTES)
      elements += visitPacked(member, reader, visit)
    else reader.skip(tag)
  }
  return elements
}

function visitPacked(member: Member, reader: WireReader, visit: Visit): number {
  let elements = 0
  const outer = reader.enter()
  const fixed = FIXED_BYTES[member.wire]
  if (fixed !== undefined)
    visit(member, reader, Math.ceil((reader.limit - reader.position) / fixed))
  for (; reader.hasMore(); elements += 1) {
    reader.count()
    visit(member, reader, 1)
  }
  reader.leave(outer)
  return elements
}

/** Moves past so many elements, which have a fixed size if there are several. @returns the bytes of a text. */
function skipElements(member: Member, reader: WireReader, count: number): number {
  const fixed = FIXED_BYTES[member.wire]
  if (fixed !== undefined) {
    reader.take(count * fixed)
  } else if (member.wire === WIRE_VARINT) {
    reader.varint()
  } else {
    const length = reader.length()
    reader.take(length)
    return length
  }
  return 0
}

/** Per member the number of elements, and the bytes that all its elements take beside a fixed item size. */
function measure(contents: Uint8Array, maxElements: number) {
  const counts = MEMBERS.map(() => 0)
  let textBytes = 0
  const elements = eachElement(contents, maxElements, (member, reader, count) => {
    counts[member.field - 1] = (counts[member.field - 1] ?? 0) + count
    textBytes += skipElements(member, reader, count)
  })
  return { counts, textBytes, elements }
}

/** Narrow integers keep the low bytes of each value, as in Triton. */
function writeInteger(reader: WireReader, datatype: Datatype, out: Buffer, at: number): number {
  reader.varint()
  const { low, high } = reader
  const size = DATATYPES[datatype].itemSize ?? 0
  if (datatype === 'BOOL') out[at] = (low | high) === 0 ? 0 : 1
  else {
    for (let i = 0; i < size; i++)
      out[at + i] = (i < 4 ? low >>> (i * 8) : high >>> (i * 8 - 32)) & 0xff
  }
  return at + size
}

interface Output {
  readonly datatype: Datatype
  readonly bytes: Buffer
  /** Up to where it is written. */
  readonly at: number
}

/** @returns up to where it is written then. */
function writeElements(reader: WireReader, count: number, { datatype, bytes, at }: Output): number {
  if (datatype === 'BYTES') {
    const length = reader.length()
    const from = reader.take(length)
    bytes.writeUInt32LE(length, at)
    reader.bytes.copy(bytes, at + LENGTH_BYTES, from, from + length)
    return at + LENGTH_BYTES + length
  }
  if (datatype !== 'FP32' && datatype !== 'FP64') return writeInteger(reader, datatype, bytes, at)
  const from = reader.take(count * (datatype === 'FP32' ? 4 : 8))
  reader.bytes.copy(bytes, at, from, reader.position)
  return at + reader.position - from
}

function isMemberFor(member: Member, datatype: Datatype | undefined): datatype is Datatype {
  const fitting: readonly Datatype[] = member.datatypes
  return datatype !== undefined && fitting.includes(datatype)
}

export interface ContentsBounds {
  /** Of the result: one-byte varints become up to eight bytes each. */
  readonly maxBytes: number
  /** That are read one by one; packed floats are not. Absent: any number. */
  readonly maxElements?: number
}

/**
 * Turns typed contents into raw tensor bytes: little-endian, BYTES elements with their lengths before them. Copies.
 *
 * @param contents - an encoded InferTensorContents.
 * @param datatype - the tensor's; undefined if the message names an unknown one, which no member fits.
 * @throws ServeError MALFORMED_MESSAGE, or MESSAGE_TOO_LARGE beyond the bounds.
 */
export function readContents(
  contents: Uint8Array,
  datatype: Datatype | undefined,
  { maxBytes, maxElements = ANY_NUMBER }: ContentsBounds,
): ReadContents {
  const { counts, textBytes, elements } = measure(contents, maxElements)
  const filled = MEMBERS.filter((_, i) => counts[i] !== 0)
  const [first, second] = filled
  if (first === undefined) return { kind: 'data', data: new Uint8Array(0), elements }
  if (!isMemberFor(first, datatype)) return { kind: 'mismatch', found: first.fallback }
  if (second !== undefined) return { kind: 'several' }
  const count = counts[first.field - 1] ?? 0
  const size = textBytes + count * (DATATYPES[datatype].itemSize ?? LENGTH_BYTES)
  if (size > maxBytes) {
    throw new ServeError(
      'MESSAGE_TOO_LARGE',
      `tensor contents take ${size} bytes, want at most ${maxBytes}`,
    )
  }
  const data = Buffer.allocUnsafe(size)
  let at = 0
  eachElement(contents, maxElements, (member, reader, several) => {
    if (member === first) at = writeElements(reader, several, { datatype, bytes: data, at })
    else skipElements(member, reader, several)
  })
  return { kind: 'data', data, elements }
}
