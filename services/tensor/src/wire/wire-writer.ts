/** Up to this length writing character codes one by one is faster than a call into native code (Node 24). */
const SHORT_TEXT_LENGTH = 24
const TWO_TO_32 = 4294967296

/** Bytes that `value`, a safe non-negative integer, takes as a varint. */
export function sizeOfVarint(value: number): number {
  if (value < 0x80) return 1
  if (value < 0x4000) return 2
  let size = 3
  for (let rest = value / 0x200000; rest >= 1; rest /= 0x80) size += 1
  return size
}

/** Bytes of a signed integer as protobuf's int64: a negative one always takes ten. */
export function sizeOfInt64(value: number): number {
  return value < 0 ? 10 : sizeOfVarint(value)
}

/** Bytes of a length-delimited field with a one-byte tag. */
export function sizeOfField(length: number): number {
  return 1 + sizeOfVarint(length) + length
}

/** Bytes of a string field with a one-byte tag; none if the text is empty, as proto3 leaves defaults out. */
export function sizeOfText(text: string): number {
  return text === '' ? 0 : sizeOfField(Buffer.byteLength(text))
}

/**
 * Writes protobuf's wire format into one buffer of exactly the right size, which the caller computes first.
 * Tags are given whole (`number << 3 | type`) and below 128.
 */
export class WireWriter {
  readonly bytes: Buffer
  position = 0

  constructor(sizeBytes: number) {
    this.bytes = Buffer.allocUnsafe(sizeBytes)
  }

  byte(value: number): void {
    this.bytes[this.position++] = value
  }

  /** A safe non-negative integer. */
  varint(value: number): void {
    let rest = value
    while (rest >= 0x80000000) {
      this.byte((rest & 0x7f) | 0x80)
      rest = Math.floor(rest / 0x80)
    }
    while (rest >= 0x80) {
      this.byte((rest & 0x7f) | 0x80)
      rest >>>= 7
    }
    this.byte(rest)
  }

  /** A safe integer as int64. */
  int64(value: number): void {
    if (value >= 0) return this.varint(value)
    this.#varint64(value >>> 0, Math.floor(value / TWO_TO_32) >>> 0)
  }

  /** The low 64 bits of `value`, for int64 and uint64. */
  bigint(value: bigint): void {
    const bits = BigInt.asUintN(64, value)
    this.#varint64(Number(bits & 0xffffffffn), Number(bits >> 32n))
  }

  double(value: number): void {
    this.position = this.bytes.writeDoubleLE(value, this.position)
  }

  /** A string field; writes nothing for an empty text. */
  text(tag: number, text: string): void {
    if (text !== '') this.textAlways(tag, text)
  }

  textAlways(tag: number, text: string): void {
    const length = Buffer.byteLength(text)
    this.byte(tag)
    this.varint(length)
    if (length === text.length && length <= SHORT_TEXT_LENGTH) {
      for (let i = 0; i < length; i++) this.byte(text.charCodeAt(i))
    } else {
      this.position += this.bytes.write(text, this.position, length, 'utf8')
    }
  }

  /** A bytes field; copies. */
  field(tag: number, value: Uint8Array): void {
    this.byte(tag)
    this.varint(value.byteLength)
    this.bytes.set(value, this.position)
    this.position += value.byteLength
  }

  #varint64(lowBits: number, highBits: number): void {
    let low = lowBits
    let high = highBits
    while (high !== 0 || low >= 0x80) {
      this.byte((low & 0x7f) | 0x80)
      low = ((low >>> 7) | (high << 25)) >>> 0
      high >>>= 7
    }
    this.byte(low)
  }
}
