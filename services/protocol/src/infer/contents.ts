import { ServeError } from '@tutti/errors'
import {
  tooManyFields,
  WIRE_BYTES,
  WIRE_FIXED32,
  WIRE_FIXED64,
  WIRE_VARINT,
  WireReader,
} from '@tutti/formats'
import { DATATYPES, type Datatype } from '@tutti/tensor'
import { countVarints, type PackedVarints, writeVarints } from './packed-varints.ts'

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

/** Result of reading typed contents: raw bytes, or the reason why there are none (triton-semantics 4.7). */
export type ReadContents =
  /** `elements` of it were read one by one, or took as long. */
  | { readonly kind: 'data'; readonly data: Uint8Array; readonly elements: number }
  | { readonly kind: 'mismatch'; readonly found: Datatype }
  | { readonly kind: 'several' }

/** The bytes of an element, of the wire types that all elements take alike. */
const FIXED_BYTES: Readonly<Record<number, number>> = { [WIRE_FIXED32]: 4, [WIRE_FIXED64]: 8 }

/** Is called with the reader standing before one element, or before a packed field's, up to the reader's limit. It reads them. */
type Visit = (member: Member, reader: WireReader, isPacked: boolean) => void

/** Bytes of packed varints that are read in the time of one element with a field of its own. */
const PACKED_BYTES = 10
/** And so many bytes of a text, or of packed floats, are copied, into new memory. */
const COPIED_BYTES = 128

/** Returns the number of elements as which a packed field counts. */
function elementsOf({ wire }: Member, bytes: number): number {
  return Math.ceil(bytes / (wire === WIRE_VARINT ? PACKED_BYTES : COPIED_BYTES))
}

/**
 * @param maxElements - that are visited one by one, or take as long. @returns how many were. @throws ServeError MESSAGE_TOO_LARGE
 * for more.
 */
function eachElement(contents: Uint8Array, maxElements: number, visit: Visit): number {
  const reader = new WireReader(contents)
  let elements = 0
  while (reader.hasMore()) {
    const tag = reader.tag()
    const member = MEMBERS[(tag >>> 3) - 1]
    const isPacked = member !== undefined && member.wire !== WIRE_BYTES && (tag & 7) === WIRE_BYTES
    const outer = isPacked ? reader.enter() : 0
    const begin = reader.position
    elements += 1
    if (isPacked) elements += elementsOf(member, reader.limit - begin)
    if (elements > maxElements) throw tooManyFields()
    if (isPacked || member?.wire === (tag & 7)) visit(member, reader, isPacked)
    else reader.skip(tag)
    if (isPacked) reader.leave(outer)
    else elements += Math.floor((reader.position - begin) / COPIED_BYTES)
  }
  if (elements > maxElements) throw tooManyFields()
  return elements
}

/** Finds the rest of a packed field. */
function rest({ bytes, position, limit }: WireReader): PackedVarints {
  return { bytes, from: position, to: limit }
}

/** Moves past one element or a packed field. @returns how many elements, and the bytes of a text. */
function skipElements(member: Member, reader: WireReader, isPacked: boolean) {
  const fixed = FIXED_BYTES[member.wire]
  let [count, textBytes] = [1, 0]
  if (fixed !== undefined) {
    if (isPacked) count = Math.ceil((reader.limit - reader.position) / fixed)
    reader.take(count * fixed)
  } else if (member.wire === WIRE_BYTES) {
    textBytes = reader.length()
    reader.take(textBytes)
  } else if (isPacked) {
    count = countVarints(rest(reader))
    reader.position = reader.limit
  } else {
    reader.varint()
  }
  return { count, textBytes }
}

/** Measures the number of elements of each member, and the bytes that texts take beside a fixed item size. */
function measure(contents: Uint8Array, maxElements: number) {
  const counts = MEMBERS.map(() => 0)
  let textBytes = 0
  const elements = eachElement(contents, maxElements, (member, reader, isPacked) => {
    const skipped = skipElements(member, reader, isPacked)
    counts[member.field - 1] = (counts[member.field - 1] ?? 0) + skipped.count
    textBytes += skipped.textBytes
  })
  return { counts, textBytes, elements }
}

interface Output {
  readonly datatype: Datatype
  readonly bytes: Buffer
  /** A view of the same bytes. */
  readonly view: DataView
  /** Offset up to which the tensor is written. */
  readonly at: number
}

/** Writes elements that `measure` has accepted. @returns up to where it is written then. */
function writeElements(
  reader: WireReader,
  isPacked: boolean,
  { datatype, bytes, view, at }: Output,
): number {
  if (datatype === 'BYTES') {
    const length = reader.length()
    const from = reader.take(length)
    bytes.writeUInt32LE(length, at)
    reader.bytes.copy(bytes, at + LENGTH_BYTES, from, from + length)
    return at + LENGTH_BYTES + length
  }
  const itemSize = DATATYPES[datatype].itemSize ?? 0
  if (datatype === 'FP32' || datatype === 'FP64') {
    const from = reader.take(isPacked ? reader.limit - reader.position : itemSize)
    reader.bytes.copy(bytes, at, from, reader.position)
    return at + reader.position - from
  }
  const from = reader.position
  if (isPacked) reader.position = reader.limit
  else reader.varint()
  const varints = { bytes: reader.bytes, from, to: reader.position }
  return writeVarints(varints, { itemSize, isBool: datatype === 'BOOL' }, view, at)
}

function isMemberFor(member: Member, datatype: Datatype | undefined): datatype is Datatype {
  const fitting: readonly Datatype[] = member.datatypes
  return datatype !== undefined && fitting.includes(datatype)
}

export interface ContentsBounds {
  /** Most bytes of the result. A varint of one byte may become eight bytes. */
  readonly maxBytes: number
  /** Most elements that are read one by one. Bytes of packed integers and of texts count as elements too. Absent: no bound. */
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
  const view = new DataView(data.buffer, data.byteOffset, size)
  let at = 0
  eachElement(contents, maxElements, (member, reader, isPacked) => {
    if (member === first) at = writeElements(reader, isPacked, { datatype, bytes: data, view, at })
    else skipElements(member, reader, isPacked)
  })
  return { kind: 'data', data, elements }
}
