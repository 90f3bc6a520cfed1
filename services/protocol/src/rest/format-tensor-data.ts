import { isUtf8 } from 'node:buffer'
import { ServeError } from '@tutti/errors'
import {
  DATATYPES,
  decodeBytesTensor,
  elementCount,
  formatShape,
  type NamedTensor,
} from '@tutti/tensor'
import { ELEMENT_READERS } from './element-readers.ts'

/** Elements in one string: large enough to be quick, small enough to stay far from the longest string. */
const BLOCK_ELEMENTS = 32_768

/**
 * Formats a tensor's elements as the inside of a flat JSON array, in blocks that only need to be concatenated.
 *
 * @throws ServeError INVALID_REQUEST if the tensor has no JSON form, RESPONSE_INVALID if its bytes do not fit its shape.
 */
export function* formatTensorData(tensor: NamedTensor): Generator<string> {
  const elements = readElements(tensor)
  for (let start = 0; start < elements.length; start += BLOCK_ELEMENTS) {
    const end = Math.min(start + BLOCK_ELEMENTS, elements.length)
    const words: string[] = []
    for (let i = start; i < end; i++) words.push(elements.format(i))
    yield (start === 0 ? '' : ',') + words.join(',')
  }
}

interface Elements {
  readonly length: number
  format(index: number): string
}

function readElements(tensor: NamedTensor): Elements {
  const { data, datatype, name } = tensor
  if (datatype === 'BYTES') return readStrings(tensor)
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
    if (isReal) return formatDouble(Number(value), name)
    return datatype === 'BOOL' ? String(value !== 0) : String(value)
  }
  return { length: want, format }
}

/** As Triton: a float32 prints as the double that it is, and a whole number keeps its `.0`. */
function formatDouble(value: number, name: string): string {
  if (Number.isFinite(value)) {
    const text = Object.is(value, -0) ? '-0' : String(value)
    return Number.isInteger(value) && !text.includes('e') ? `${text}.0` : text
  }
  throw noJsonForm(name, `holds ${value}`)
}

function readStrings(tensor: NamedTensor): Elements {
  const strings = splitStrings(tensor)
  if (strings.length !== elementCount(tensor.shape)) throw sizeMismatch(tensor)
  return {
    length: strings.length,
    format: (i) => {
      const bytes = strings[i] ?? new Uint8Array(0)
      if (!isUtf8(bytes)) throw noJsonForm(tensor.name, 'holds bytes that are no UTF-8')
      return JSON.stringify(
        Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'),
      )
    },
  }
}

function splitStrings(tensor: NamedTensor): readonly Uint8Array[] {
  try {
    return decodeBytesTensor(tensor.data)
  } catch (cause) {
    throw sizeMismatch(tensor, cause)
  }
}

function noJsonForm(name: string, what: string): ServeError {
  return new ServeError(
    'INVALID_REQUEST',
    `output '${name}' ${what}, which JSON cannot carry. Please use the binary data format for output`,
    { details: { field: name } },
  )
}

function sizeMismatch(tensor: NamedTensor, cause?: unknown): ServeError {
  return new ServeError(
    'RESPONSE_INVALID',
    `output tensor shape does not match size of output for '${tensor.name}': ` +
      `got ${tensor.data.byteLength} bytes of ${tensor.datatype} for shape ${formatShape(tensor.shape)}`,
    { cause },
  )
}
