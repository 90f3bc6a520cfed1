import { STATIC_TABLE } from './static-table.ts'

const MAX_LENGTH_IN_ONE_BYTE = 126
/** "Without indexing", and a name from the static table. */
const NAME_BITS = 4

/** Encoded block of fields. A block that is the same each time should be made once. */
export type FieldBlock = Uint8Array

/**
 * Encodes fields with indexes of the static table, else as plain texts. They need no dynamic table, so a block is good for any
 * connection.
 *
 * @param fields - names in lower case; names and values are strings of bytes (latin1).
 */
export function encodeFields(fields: Iterable<readonly [name: string, value: string]>): FieldBlock {
  const pieces: Uint8Array[] = []
  for (const [name, value] of fields) {
    const whole = STATIC_TABLE.findIndex((it) => it.name === name && it.value === value)
    if (whole >= 0) {
      pieces.push(Uint8Array.of(0x80 | (whole + 1)))
      continue
    }
    const index = STATIC_TABLE.findIndex((it) => it.name === name) + 1
    pieces.push(toInteger(index, NAME_BITS))
    if (index === 0) pieces.push(...toText(name))
    pieces.push(...toText(value))
  }
  return Buffer.concat(pieces)
}

function toText(text: string): readonly Uint8Array[] {
  const bytes = Buffer.from(text, 'latin1')
  if (bytes.byteLength <= MAX_LENGTH_IN_ONE_BYTE) return [Uint8Array.of(bytes.byteLength), bytes]
  return [toInteger(bytes.byteLength, 7), bytes]
}

/** @see RFC 7541, 5.1 */
function toInteger(value: number, prefixBits: number): Uint8Array {
  const most = (1 << prefixBits) - 1
  if (value < most) return Uint8Array.of(value)
  const bytes = [most]
  let rest = value - most
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest & 127) | 128)
  return Uint8Array.from([...bytes, rest])
}
