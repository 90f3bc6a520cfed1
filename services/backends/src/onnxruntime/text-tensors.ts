import { decodeBytesTensor } from '@tutti/tensor'
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
  const texts = parts.flatMap(({ data }) => decodeBytesTensor(data))
  if (texts.length !== count) refuseData(port, dims, `${texts.length} elements`, count)
  const { api, allocator } = library
  const [shape, out] = [BigInt64Array.from(dims, BigInt), new BigUint64Array(1)]
  check(api.createTensor(allocator, shape, dims.length, TYPE_NUMBERS.get('BYTES') ?? 0, out))
  const value = out[0] ?? 0n
  try {
    fillTexts(library, value, texts, check)
    return value
  } catch (error) {
    api.releaseValue(value)
    throw error
  }
}

/** Fills a tensor of as many strings. @param check - of each status. */
function fillTexts(
  { api, addressOf }: OrtLibrary,
  value: Address,
  texts: readonly Uint8Array[],
  check: (status: number) => void,
): void {
  if (texts.length === 0) return
  const size = texts.reduce((sum, { byteLength }) => sum + byteLength + 1, 0)
  const bytes = Buffer.alloc(size)
  const begins = new BigUint64Array(texts.length)
  let at = addressOf(bytes)
  let offset = 0
  texts.forEach((text, i) => {
    bytes.set(text, offset)
    begins[i] = BigInt(at)
    offset += text.byteLength + 1
    at += text.byteLength + 1
  })
  REFERENCED.add(bytes)
  const status = api.fillStringTensor(value, begins, texts.length)
  REFERENCED.delete(bytes)
  check(status)
  // One call takes all, as C strings; those that hold a NUL are set again with their length.
  const place = new BigUint64Array(1)
  texts.forEach((text, i) => {
    if (!text.includes(NUL)) return
    check(api.resizeStringElement(value, i, text.byteLength, place))
    api.copyTo(place[0] ?? 0n, text, text.byteLength)
  })
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
