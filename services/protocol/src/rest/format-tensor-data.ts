import { isUtf8 } from 'node:buffer'
import { ServeError } from '@tutti/errors'
import {
  DATATYPES,
  ELEMENT_READERS,
  elementCount,
  formatShape,
  type NamedTensor,
} from '@tutti/tensor'

/** Numbers in one block: quick to make, and far from the longest string. */
const BLOCK_NUMBERS = 4096
/** Characters of strings in one block, and bytes of a string that are turned into text at once. */
const BLOCK_CHARACTERS = 32_768
const LENGTH_BYTES = 4
/** Bytes of the longest string whose characters are looked at one by one. */
const SHORT_BYTES = 64

/**
 * Formats a tensor's elements as the inside of a flat JSON array, in blocks that only need to be concatenated. Each takes a
 * millisecond or two, however large the tensor and its strings are.
 *
 * @throws ServeError INVALID_REQUEST if the tensor has no JSON form, RESPONSE_INVALID if its bytes do not fit its shape.
 */
export function formatTensorData(tensor: NamedTensor): Generator<string> {
  return tensor.datatype === 'BYTES' ? formatStrings(tensor) : formatNumbers(tensor)
}

function* formatNumbers(tensor: NamedTensor): Generator<string> {
  const { data, datatype, name } = tensor
  const read = ELEMENT_READERS[datatype]
  if (read === undefined) {
    throw new ServeError(
      'INVALID_REQUEST',
      `sending ${datatype} data via JSON is not supported. Please use the binary data format for output`,
      { details: { field: name } },
    )
  }
  const want = elementCount(tensor.shape)
  if (data.byteLength !== want * (DATATYPES[datatype].itemSize ?? 0)) throw sizeMismatch(tensor)
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  const isReal = datatype === 'FP32' || datatype === 'FP64'
  const format = (i: number): string => {
    const value = read(view, i)
    if (isReal) return formatDouble(Number(value))
    return datatype === 'BOOL' ? String(value !== 0) : String(value)
  }
  for (let start = 0; start < want; start += BLOCK_NUMBERS) {
    const end = Math.min(start + BLOCK_NUMBERS, want)
    const words: string[] = []
    for (let i = start; i < end; i++) words.push(format(i))
    yield (start === 0 ? '' : ',') + words.join(',')
  }
}

/**
 * Formats a number as Triton does: a float32 prints as the double that it is, a whole number keeps its `.0`, and NaN and Infinity
 * have no quotes.
 */
function formatDouble(value: number): string {
  const text = Object.is(value, -0) ? '-0' : String(value)
  return Number.isInteger(value) && !text.includes('e') ? `${text}.0` : text
}

function* formatStrings(tensor: NamedTensor): Generator<string> {
  let block = ''
  let count = 0
  const { data, name } = tensor
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength)
  for (let begin = 0, next = 0; begin < bytes.byteLength; begin = next) {
    begin += LENGTH_BYTES
    next = elementEnd(tensor, bytes, begin)
    block += count === 0 ? '"' : ',"'
    count += 1
    for (let at = begin; at < next; ) {
      const end = characterEnd(bytes, at + BLOCK_CHARACTERS, next)
      block += escapedText(bytes, at, end, name)
      at = end
      if (block.length < BLOCK_CHARACTERS) continue
      yield block
      block = ''
    }
    block += '"'
    if (block.length < BLOCK_CHARACTERS) continue
    yield block
    block = ''
  }
  if (count !== elementCount(tensor.shape)) throw sizeMismatch(tensor)
  yield block
}

/** Finds the end of the element that begins at `begin`, behind its length. */
function elementEnd(tensor: NamedTensor, bytes: Buffer, begin: number): number {
  if (begin > bytes.byteLength) throw sizeMismatch(tensor)
  const end = begin + bytes.readUInt32LE(begin - LENGTH_BYTES)
  if (end > bytes.byteLength) throw sizeMismatch(tensor)
  return end
}

/** Finds the end of a piece that cuts no character of UTF-8 in two. */
function characterEnd(bytes: Uint8Array, limit: number, last: number): number {
  let end = Math.min(limit, last)
  while (end < last && end > limit - 4 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1
  return end
}

/** Writes the inside of a JSON string. */
function escapedText(bytes: Buffer, begin: number, end: number, name: string): string {
  // Most are short and as they are in JSON: no view is made of those.
  if (end - begin <= SHORT_BYTES) {
    let at = begin
    while (at < end && isPlain(bytes[at] ?? 0)) at += 1
    if (at === end) return bytes.toString('latin1', begin, end)
  }
  if (!isUtf8(bytes.subarray(begin, end))) throw noJsonForm(name, 'holds bytes that are no UTF-8')
  return JSON.stringify(bytes.toString('utf8', begin, end)).slice(1, -1)
}

/** Tells whether a character is one of ASCII that JSON does not escape. */
function isPlain(code: number): boolean {
  return code >= 0x20 && code < 0x7f && code !== 0x22 && code !== 0x5c
}

function noJsonForm(name: string, what: string): ServeError {
  return new ServeError(
    'INVALID_REQUEST',
    `output '${name}' ${what}, which JSON cannot carry. Please use the binary data format for output`,
    { details: { field: name } },
  )
}

function sizeMismatch(tensor: NamedTensor): ServeError {
  return new ServeError(
    'RESPONSE_INVALID',
    `output tensor shape does not match size of output for '${tensor.name}': ` +
      `got ${tensor.data.byteLength} bytes of ${tensor.datatype} for shape ${formatShape(tensor.shape)}`,
  )
}
