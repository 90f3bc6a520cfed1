/** Wire types of protobuf. */
const [WIRE_VARINT, WIRE_BYTES, WIRE_FIXED32] = [0, 2, 5]
const WIRE_BITS = 8

/** Encodes an unsigned number, or a negative one as its 64-bit two's complement. */
function writeVarint(value: number | bigint): Uint8Array {
  let rest = BigInt.asUintN(64, BigInt(value))
  const out: number[] = []
  while (rest > 0x7fn) {
    out.push(Number(rest & 0x7fn) | 0x80)
    rest >>= 7n
  }
  out.push(Number(rest))
  return Uint8Array.from(out)
}

/** A varint field. */
export function writeNumber(field: number, value: number | bigint): Uint8Array {
  return Buffer.concat([writeVarint(field * WIRE_BITS + WIRE_VARINT), writeVarint(value)])
}

/** A string, bytes or message field. */
export function writeBytes(field: number, value: string | Uint8Array): Uint8Array {
  const bytes = typeof value === 'string' ? new TextEncoder().encode(value) : value
  return Buffer.concat([
    writeVarint(field * WIRE_BITS + WIRE_BYTES),
    writeVarint(bytes.byteLength),
    bytes,
  ])
}

/** A float field. */
export function writeFloat(field: number, value: number): Uint8Array {
  const tag = writeVarint(field * WIRE_BITS + WIRE_FIXED32)
  return Buffer.concat([tag, new Uint8Array(Float32Array.of(value).buffer)])
}
