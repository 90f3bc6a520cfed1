import { TYPE_NUMBERS } from '@tutti/builtins'
import { walkBytesTensor } from '@tutti/tensor'
import type { Address, OrtLibrary } from './ort-library.ts'
import { refuseData } from './run-errors.ts'
import type { RunInput, SessionPort } from './session-contract.ts'

const PREFIX_BYTES = 4
const NUL = 0
/** Memory that calls read by address only: the collector must not free it meanwhile. */
const REFERENCED = new Set<Uint8Array>()

/** The parts of which a tensor of strings is made. */
interface TextsInput {
  readonly port: SessionPort
  readonly tensor: RunInput
  /** Elements of its shape. */
  readonly count: number
}

/**
 * Makes a tensor of strings for the runtime; copies.
 *
 * @param check - throws for a status that is not 0.
 * @returns the address of an OrtValue, which the caller releases.
 * @throws ServeError INVALID_TENSOR_DATA if the number of elements does not fit the shape.
 */
export function createTexts(
  library: OrtLibrary,
  { port, tensor: { dims, parts }, count }: TextsInput,
  check: (status: number) => void,
): bigint {
  const found = parts.reduce((sum, { data }) => sum + walkBytesTensor(data), 0)
  if (found !== count) refuseData(port, dims, `${found} elements`, count)
  const { api, allocator } = library
  const [shape, out] = [BigInt64Array.from(dims, BigInt), new BigUint64Array(1)]
  check(api.createTensor(allocator, shape, dims.length, TYPE_NUMBERS.get('BYTES') ?? 0, out))
  const value = out[0] ?? 0n
  try {
    if (count > 0) fillTexts(library, value, { parts, count }, check)
    return value
  } catch (error) {
    api.releaseValue(value)
    throw error
  }
}

/** Fills a tensor of `count` strings. @param check - of each status. */
function fillTexts(
  { api, addressOf }: OrtLibrary,
  value: Address,
  { parts, count }: Pick<RunInput, 'parts'> & Pick<TextsInput, 'count'>,
  check: (status: number) => void,
): void {
  // Each with a NUL behind it, in the place of its length.
  const size =
    parts.reduce((sum, { data }) => sum + data.byteLength, 0) - (PREFIX_BYTES - 1) * count
  const bytes = Buffer.alloc(size)
  const begins = new BigUint64Array(count)
  const address = addressOf(bytes)
  const places = new Places(begins)
  const special: Special[] = []
  let [i, offset] = [0, 0]
  for (const { data } of parts) {
    walkBytesTensor(data, (begin, end) => {
      places.set(i, address + offset)
      if (copyText(data, begin, end, bytes, offset)) {
        special.push({ i, begin: offset, size: end - begin })
      }
      i += 1
      offset += end - begin + 1
    })
  }
  REFERENCED.add(bytes)
  const status = api.fillStringTensor(value, begins, count)
  REFERENCED.delete(bytes)
  check(status)
  // One call takes all, as C strings; those that hold a NUL are set again with their length.
  const place = new BigUint64Array(1)
  for (const { i: index, begin, size: length } of special) {
    check(api.resizeStringElement(value, index, length, place))
    api.copyTo(place[0] ?? 0n, bytes.subarray(begin, begin + length), length)
  }
}

/** An element that holds a NUL. */
interface Special {
  readonly i: number
  readonly begin: number
  readonly size: number
}

/** Below that a call of native code takes longer than to copy one byte after the other. */
const SHORT_BYTES = 64

/** Copies an element. @returns whether it holds a NUL. */
function copyText(
  from: Uint8Array,
  begin: number,
  end: number,
  to: Uint8Array,
  offset: number,
): boolean {
  if (end - begin > SHORT_BYTES) {
    const text = from.subarray(begin, end)
    to.set(text, offset)
    return text.includes(NUL)
  }
  let isSpecial = false
  for (let at = begin; at < end; at += 1) {
    const byte = from[at] ?? NUL
    if (byte === NUL) isSpecial = true
    to[offset + at - begin] = byte
  }
  return isSpecial
}

const WORD = 2 ** 32

/** Addresses in native memory, without a BigInt for each: its machine is little-endian, and they are below 2^53. */
class Places {
  readonly #words: Uint32Array

  constructor({ buffer, byteOffset, length }: BigUint64Array) {
    this.#words = new Uint32Array(buffer, byteOffset, 2 * length)
  }

  set(i: number, address: number): void {
    const high = Math.floor(address / WORD)
    this.#words[2 * i] = address - high * WORD
    this.#words[2 * i + 1] = high
  }

  get(i: number): number {
    return (this.#words[2 * i + 1] ?? 0) * WORD + (this.#words[2 * i] ?? 0)
  }
}

/** Reads a tensor of `count` strings as the data of a BYTES tensor; copies. @param check - throws for a status that is not 0. */
export function readTexts(
  { api }: OrtLibrary,
  value: Address,
  count: number,
  check: (status: number) => void,
): Uint8Array {
  if (count === 0) return new Uint8Array(0)
  const size = new BigUint64Array(1)
  check(api.getStringBytes(value, size))
  const total = Number(size[0])
  // One byte more, so that there is memory to point to.
  const texts = Buffer.allocUnsafe(total + 1)
  const begins = new BigUint64Array(count)
  check(api.getStrings(value, texts, total, begins, count))
  const places = new Places(begins)
  const out = new Uint8Array(total + count * PREFIX_BYTES)
  const view = new DataView(out.buffer)
  let [offset, begin] = [0, 0]
  for (let i = 0; i < count; i += 1) {
    const end = i + 1 < count ? places.get(i + 1) : total
    view.setUint32(offset, end - begin, true)
    copyText(texts, begin, end, out, offset + PREFIX_BYTES)
    offset += PREFIX_BYTES + end - begin
    begin = end
  }
  return out
}
