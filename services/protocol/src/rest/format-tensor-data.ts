import { isUtf8 } from 'node:buffer'
import { ServeError } from '@tutti/errors'
import {
  DATATYPES,
  type Datatype,
  decodeBytesTensor,
  elementCount,
  formatShape,
  type NamedTensor,
} from '@tutti/tensor'

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
  if (datatype === 'FP16' || datatype === 'BF16') {
    throw new ServeError(
      'INVALID_REQUEST',
      `sending ${datatype} data via JSON is not supported. Please use the binary data format for output`,
      { details: { field: name } },
    )
  }
  const want = elementCount(tensor.shape)
  if (data.byteLength !== want * DATATYPES[datatype].itemSize) throw sizeMismatch(tensor)
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  const format = FORMATTERS[datatype]
  return { length: want, format: (i) => format(view, i, name) }
}

type Formatter = (view: DataView, index: number, name: string) => string

/** For each datatype with numbers in it how to print element `index`. */
const FORMATTERS: Readonly<Record<Exclude<Datatype, 'BYTES' | 'FP16' | 'BF16'>, Formatter>> = {
  BOOL: (view, i) => (view.getUint8(i) === 0 ? 'false' : 'true'),
  UINT8: (view, i) => String(view.getUint8(i)),
  UINT16: (view, i) => String(view.getUint16(i * 2, true)),
  UINT32: (view, i) => String(view.getUint32(i * 4, true)),
  UINT64: (view, i) => String(view.getBigUint64(i * 8, true)),
  INT8: (view, i) => String(view.getInt8(i)),
  INT16: (view, i) => String(view.getInt16(i * 2, true)),
  INT32: (view, i) => String(view.getInt32(i * 4, true)),
  INT64: (view, i) => String(view.getBigInt64(i * 8, true)),
  FP32: (view, i, name) => formatDouble(view.getFloat32(i * 4, true), name),
  FP64: (view, i, name) => formatDouble(view.getFloat64(i * 8, true), name),
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
