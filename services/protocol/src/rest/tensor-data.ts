import { ServeError } from '@tutti/errors'
import {
  type Datatype,
  elementCount,
  formatElementCount,
  formatShape,
  type Shape,
} from '@tutti/tensor'
import { readNumbers } from './exact-numbers.ts'
import {
  jsonTypeError,
  NON_BOOLEAN,
  NON_NUMBER,
  NON_SIGNED,
  NON_STRING,
  NON_UNSIGNED,
  tooBig,
} from './json-fields.ts'

/** Arrays of a `data` member may nest this deep; tensors have fewer dimensions, and the walk is recursive. */
const MAX_NESTING = 64
const CONTEXT = "Unable to parse 'data'"

/** Tensor whose `data` member is to be turned into bytes. */
export interface JsonTensor {
  readonly name: string
  readonly datatype: Datatype
  readonly shape: Shape
  /** Elements, flat or nested in any way, read in row-major order as Triton does. */
  readonly data: readonly unknown[]
  /** True if the document has NaN or infinities, see JsonDocument. */
  readonly hasNames: boolean
  /** Finds the text of `data`. Called only if an INT64 or UINT64 tensor has integers beyond 2^53. */
  dataText(): string
}

/**
 * Makes the bytes of a tensor from its JSON form.
 *
 * @returns new memory, little-endian.
 * @throws ServeError MALFORMED_MESSAGE (HTTP 500, as Triton) for an element of the wrong type or a number of elements that does
 * not fit the shape; INVALID_TENSOR_DATA for a value out of the datatype's range; INVALID_REQUEST for FP16 and BF16.
 */
export function parseTensorData(tensor: JsonTensor): Uint8Array {
  const { datatype, name } = tensor
  if (datatype === 'FP16' || datatype === 'BF16') {
    throw new ServeError(
      'INVALID_REQUEST',
      `receiving ${datatype} data via JSON is not supported. Please use the binary data format for input ${name}`,
      { details: { field: name } },
    )
  }
  const leaves = flatten(tensor.data)
  const want = elementCount(tensor.shape)
  // Triton leaves the count of strings to later checks, and tells wrong elements before a wrong count.
  const isLeft = leaves.length === want || datatype === 'BYTES' || tensor.shape.length === 0
  const bytes = encode(isLeft ? leaves : leaves.slice(0, want), tensor, datatype)
  if (isLeft) return bytes
  throw jsonTypeError(
    CONTEXT,
    `Shape does not match true shape of 'data' field: input '${name}' has ${leaves.length} elements, want ${formatElementCount(tensor.shape)} for shape ${formatShape(tensor.shape)}`,
  )
}

function encode(
  leaves: readonly unknown[],
  tensor: JsonTensor,
  datatype: Exclude<Datatype, 'FP16' | 'BF16'>,
): Uint8Array {
  if (datatype === 'BYTES') return encodeStrings(leaves)
  if (datatype === 'BOOL') return encodeBooleans(leaves)
  if (datatype === 'FP32' || datatype === 'FP64') return encodeFloats(leaves, datatype, tensor)
  if (datatype === 'INT64' || datatype === 'UINT64') return encodeLongs(leaves, datatype, tensor)
  return encodeIntegers(leaves, datatype, tensor)
}

function flatten(data: readonly unknown[]): readonly unknown[] {
  if (!data.some((item) => Array.isArray(item))) return data
  const leaves: unknown[] = []
  collect(data, leaves, 1)
  return leaves
}

function collect(items: readonly unknown[], leaves: unknown[], depth: number): void {
  if (depth > MAX_NESTING) {
    throw jsonTypeError(CONTEXT, `arrays nest deeper than ${MAX_NESTING}`)
  }
  for (const item of items) {
    if (Array.isArray(item)) collect(item, leaves, depth + 1)
    else leaves.push(item)
  }
}

function encodeStrings(leaves: readonly unknown[]): Uint8Array {
  let size = 0
  for (const leaf of leaves) {
    if (typeof leaf !== 'string') {
      throw jsonTypeError('Unable to parse JSON bytes array', NON_STRING)
    }
    if (!leaf.isWellFormed()) {
      throw jsonTypeError(CONTEXT, 'the surrogate pair in a string is invalid')
    }
    size += 4 + Buffer.byteLength(leaf)
  }
  const out = Buffer.allocUnsafeSlow(size)
  let offset = 0
  for (const leaf of leaves) {
    const length = out.write(String(leaf), offset + 4)
    out.writeUInt32LE(length, offset)
    offset += 4 + length
  }
  return out
}

function encodeBooleans(leaves: readonly unknown[]): Uint8Array {
  const out = new Uint8Array(leaves.length)
  for (const [i, leaf] of leaves.entries()) {
    if (typeof leaf !== 'boolean') throw jsonTypeError(CONTEXT, NON_BOOLEAN)
    out[i] = leaf ? 1 : 0
  }
  return out
}

function encodeFloats(
  leaves: readonly unknown[],
  datatype: 'FP32' | 'FP64',
  { hasNames }: JsonTensor,
): Uint8Array {
  const out =
    datatype === 'FP32' ? new Float32Array(leaves.length) : new Float64Array(leaves.length)
  for (let i = 0; i < leaves.length; i++) {
    const leaf = leaves[i]
    if (typeof leaf !== 'number') throw jsonTypeError(CONTEXT, NON_NUMBER)
    // Written with digits, such as 1e400.
    if (!hasNames && !Number.isFinite(leaf)) throw tooBig()
    out[i] = leaf
  }
  return new Uint8Array(out.buffer)
}

const INTEGERS = {
  UINT8: Uint8Array,
  UINT16: Uint16Array,
  UINT32: Uint32Array,
  INT8: Int8Array,
  INT16: Int16Array,
  INT32: Int32Array,
} as const

function encodeIntegers(
  leaves: readonly unknown[],
  datatype: keyof typeof INTEGERS,
  tensor: JsonTensor,
): Uint8Array {
  const out = new INTEGERS[datatype](leaves.length)
  for (let i = 0; i < leaves.length; i++) {
    const leaf = leaves[i]
    if (!isInteger(leaf)) throw notInteger(leaves, datatype, tensor)
    out[i] = leaf
    if (out[i] === leaf) continue
    // Triton would take its low bytes, and tell one of the wrong type.
    if (!leaves.slice(i).every(isInteger)) throw notInteger(leaves, datatype, tensor)
    throw rangeError(tensor.name, leaf, datatype)
  }
  return new Uint8Array(out.buffer)
}

function encodeLongs(
  leaves: readonly unknown[],
  datatype: 'INT64' | 'UINT64',
  tensor: JsonTensor,
): Uint8Array {
  const exact = exactIntegers(leaves, datatype, tensor)
  const out =
    datatype === 'INT64' ? new BigInt64Array(exact.length) : new BigUint64Array(exact.length)
  for (const [i, integer] of exact.entries()) {
    const value = BigInt(integer)
    out[i] = value
    if (out[i] !== value) throw integerTypeError(datatype)
  }
  return new Uint8Array(out.buffer)
}

function exactIntegers(
  leaves: readonly unknown[],
  datatype: 'INT64' | 'UINT64',
  tensor: JsonTensor,
): readonly (number | bigint)[] {
  const integers = leaves.filter((leaf) => isInteger(leaf))
  if (integers.length !== leaves.length) throw notInteger(leaves, datatype, tensor)
  if (integers.every((integer) => Number.isSafeInteger(integer))) return integers
  const exact = readNumbers(tensor.dataText())
  // A number that is still unsafe was written with a fraction or an exponent, such as 1e20.
  if (exact.some((value) => typeof value === 'number' && !Number.isSafeInteger(value))) {
    throw integerTypeError(datatype)
  }
  return exact
}

/**
 * Makes the error of elements that are not all integers: one is written with digits, such as 1e400, that no double holds, or is
 * of the wrong type.
 */
function notInteger(
  leaves: readonly unknown[],
  datatype: Datatype,
  { hasNames }: JsonTensor,
): ServeError {
  const isTooBig = leaves.some((leaf) => leaf === Infinity || leaf === -Infinity)
  return isTooBig && !hasNames ? tooBig() : integerTypeError(datatype)
}

function isInteger(leaf: unknown): leaf is number {
  return Number.isInteger(leaf)
}

function integerTypeError(datatype: Datatype): ServeError {
  return jsonTypeError(CONTEXT, datatype.startsWith('U') ? NON_UNSIGNED : NON_SIGNED)
}

/**
 * Refuses a number beyond 64 bits as one of the wrong type, and another one as out of range: Triton would take its low bytes. The
 * greatest integers round up.
 */
function rangeError(name: string, value: number, datatype: Datatype): ServeError {
  const [least, beyond] = datatype.startsWith('U') ? [0, 2 ** 64] : [-(2 ** 63), 2 ** 63]
  if (value < least || value > beyond) return integerTypeError(datatype)
  return new ServeError(
    'INVALID_TENSOR_DATA',
    `${CONTEXT}: value ${value} of input '${name}' is out of range for ${datatype}`,
    { details: { field: name } },
  )
}
