import { walkBytesTensor } from '@tutti/tensor'
import { TYPE_NUMBERS } from '../onnx/model-ports.ts'
import type { Address, OrtLibrary } from './ort-library.ts'
import { refuseData } from './run-errors.ts'
import type { SessionPort, TensorParts } from './session-contract.ts'

const PREFIX_BYTES = 4
const NUL = 0
/** What calls read by address only: the collector must not free it meanwhile. */
const REFERENCED = new Set<Uint8Array>()

/** What a tensor of strings is made of. */
interface TextsInput {
  readonly port: SessionPort
  readonly tensor: TensorParts
  /** Elements of its shape. */
  readonly count: number
}

/** @returns the address of an OrtValue. @throws ServeError INVALID_TENSOR_DATA @param check - of each status. */
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
  { parts, count }: Pick<TensorParts, 'parts'> & Pick<TextsInput, 'count'>,
  check: (status: number) => void,
): void {
  // Each with a NUL behind it, in the place of its length.
  const size =
    parts.reduce((sum, { data }) => sum + data.byteLength, 0) - (PREFIX_BYTES - 1) * count
  const bytes = Buffer.alloc(size)
  const begins = new BigUint64Array(count)
  // Where each begins, and at last the end.
  const offsets = new Float64Array(count + 1)
  const address = BigInt(addressOf(bytes))
  let i = 0
  let offset = 0
  for (const { data } of parts) {
    const from = Buffer.from(data.buffer, data.byteOffset, data.byteLength)
    walkBytesTensor(data, (begin, end) => {
      from.copy(bytes, offset, begin, end)
      begins[i] = address + BigInt(offset)
      i += 1
      offset += end - begin + 1
      offsets[i] = offset
    })
  }
  REFERENCED.add(bytes)
  const status = api.fillStringTensor(value, begins, count)
  REFERENCED.delete(bytes)
  check(status)
  // One call takes all, as C strings; those that hold a NUL are set again with their length.
  const place = new BigUint64Array(1)
  for (i = 0; i < count; i++) {
    const begin = offsets[i] ?? 0
    const end = (offsets[i + 1] ?? 0) - 1
    // The search ends with the one behind it.
    if (bytes.indexOf(NUL, begin) === end) continue
    check(api.resizeStringElement(value, i, end - begin, place))
    api.copyTo(place[0] ?? 0n, bytes.subarray(begin, end), end - begin)
  }
}

/** The BYTES tensor of a tensor of `count` strings; a copy. */
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
  const out = Buffer.allocUnsafe(total + count * PREFIX_BYTES)
  let offset = 0
  for (let i = 0; i < count; i += 1) {
    const begin = Number(begins[i])
    const end = i + 1 < count ? Number(begins[i + 1]) : total
    offset = out.writeUInt32LE(end - begin, offset)
    offset += texts.copy(out, offset, begin, end)
  }
  return out
}
