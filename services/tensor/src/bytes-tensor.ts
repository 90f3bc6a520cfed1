import { ServeError } from '@tutti/errors'

const PREFIX_BYTES = 4

/** Encodes elements as the v2 protocol does: uint32 little-endian length, then the bytes, for each. Copies. */
export function encodeBytesTensor(elements: readonly Uint8Array[]): Uint8Array {
  let size = 0
  for (const element of elements) size += PREFIX_BYTES + element.byteLength
  const out = new Uint8Array(size)
  const view = new DataView(out.buffer)
  let offset = 0
  for (const element of elements) {
    view.setUint32(offset, element.byteLength, true)
    out.set(element, offset + PREFIX_BYTES)
    offset += PREFIX_BYTES + element.byteLength
  }
  return out
}

/**
 * The elements of a BYTES tensor, one after the other.
 *
 * @returns views into `data`, not copies.
 * @throws ServeError INVALID_TENSOR_DATA if a length or an element is cut short.
 */
export function* bytesElements(data: Uint8Array): Generator<Uint8Array> {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  let offset = 0
  while (offset < data.byteLength) {
    const left = data.byteLength - offset
    if (left < PREFIX_BYTES) {
      const text = `incomplete string length indicator: want ${PREFIX_BYTES} bytes, got ${left}`
      throw new ServeError('INVALID_TENSOR_DATA', text)
    }
    const length = view.getUint32(offset, true)
    offset += PREFIX_BYTES
    if (data.byteLength - offset < length) {
      const text = `incomplete string data: want ${length} bytes, got ${data.byteLength - offset}`
      throw new ServeError('INVALID_TENSOR_DATA', text)
    }
    yield data.subarray(offset, offset + length)
    offset += length
  }
}

/** All elements of a BYTES tensor at once, as `bytesElements`. */
export function decodeBytesTensor(data: Uint8Array): Uint8Array[] {
  return [...bytesElements(data)]
}
