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

/** What typed contents turned out to be: raw bytes, or the reason why they are not (triton-semantics 4.7). */
export type ReadContents =
  | { readonly kind: 'data'; readonly data: Uint8Array }
  | { readonly kind: 'mismatch'; readonly found: Datatype }
  | { readonly kind: 'several' }

/** Calls `visit` at each element, with the reader standing before its value; `visit` reads it. */
function eachElement(
  contents: Uint8Array,
  visit: (member: Member, reader: WireReader) => void,
): void {
  const reader = new WireReader(contents)
  while (reader.hasMore()) {
    const tag = reader.tag()
    const member = MEMBERS[(tag >>> 3) - 1]
    const wire = tag & 7
    if (member?.wire === wire) visit(member, reader)
    else if (member !== undefined && wire === WIRE_BYTES) {
      const outer = reader.enter()
      while (reader.hasMore()) visit(member, reader)
      reader.leave(outer)
    } else reader.skip(tag)
  }
}

/** Per member the number of elements, and the bytes that all its elements take beside a fixed item size. */
function measure(contents: Uint8Array): { readonly counts: number[]; readonly textBytes: number } {
  const counts = MEMBERS.map(() => 0)
  let textBytes = 0
  eachElement(contents, (member, reader) => {
    counts[member.field - 1] = (counts[member.field - 1] ?? 0) + 1
    if (member.wire === WIRE_BYTES) textBytes += reader.view().byteLength
    else reader.skip(member.wire)
  })
  return { counts, textBytes }
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

function writeElement(reader: WireReader, datatype: Datatype, out: Buffer, at: number): number {
  if (datatype === 'BYTES') {
    const element = reader.view()
    out.writeUInt32LE(element.byteLength, at)
    out.set(element, at + LENGTH_BYTES)
    return at + LENGTH_BYTES + element.byteLength
  }
  if (datatype !== 'FP32' && datatype !== 'FP64') return writeInteger(reader, datatype, out, at)
  const from = reader.position
  reader.skip(datatype === 'FP32' ? WIRE_FIXED32 : WIRE_FIXED64)
  reader.bytes.copy(out, at, from, reader.position)
  return at + reader.position - from
}

function isMemberFor(member: Member, datatype: Datatype | undefined): datatype is Datatype {
  const fitting: readonly Datatype[] = member.datatypes
  return datatype !== undefined && fitting.includes(datatype)
}

/**
 * Turns typed contents into raw tensor bytes: little-endian, BYTES elements with their lengths before them. Copies.
 *
 * @param contents - an encoded InferTensorContents.
 * @param datatype - the tensor's; undefined if the message names an unknown one, which no member fits.
 * @param maxBytes - bound of the result: one-byte varints become up to eight bytes each.
 * @throws ServeError MALFORMED_MESSAGE, or MESSAGE_TOO_LARGE beyond `maxBytes`.
 */
export function readContents(
  contents: Uint8Array,
  datatype: Datatype | undefined,
  maxBytes: number,
): ReadContents {
  const { counts, textBytes } = measure(contents)
  const filled = MEMBERS.filter((_, i) => counts[i] !== 0)
  const [first, second] = filled
  if (first === undefined) return { kind: 'data', data: new Uint8Array(0) }
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
  eachElement(contents, (member, reader) => {
    if (member === first) at = writeElement(reader, datatype, data, at)
    else reader.skip(member.wire)
  })
  return { kind: 'data', data }
}
