import {
  DATATYPES,
  type Datatype,
  elementCount,
  inputRefusal,
  isDatatype,
  type TensorValue,
} from '@tutti/tensor'

/*
 * NumPy's file format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html. Read are versions 1 to 3, written is
 * version 1.
 */

const MAGIC = Uint8Array.from('\x93NUMPY', codeOf)
/** Magic, version, and the length of the header of version 1. */
const HEAD_BYTES = 10
const ALIGN_BYTES = 64

const DESCRIPTORS: Readonly<Partial<Record<Datatype, string>>> = {
  BOOL: '|b1',
  UINT8: '|u1',
  UINT16: '<u2',
  UINT32: '<u4',
  UINT64: '<u8',
  INT8: '|i1',
  INT16: '<i2',
  INT32: '<i4',
  INT64: '<i8',
  FP16: '<f2',
  FP32: '<f4',
  FP64: '<f8',
}

export function isNpy(bytes: Uint8Array): boolean {
  return MAGIC.every((byte, i) => byte === bytes[i])
}

/**
 * Reads a file of NumPy with numbers in C order, little-endian.
 *
 * @param bytes - `data` of the result is a view into it.
 * @throws ServeError INVALID_REQUEST that says what is wrong with it; the caller adds where it is from.
 */
export function parseNpy(bytes: Uint8Array): TensorValue {
  const { header, start } = readHeader(bytes)
  const descriptor = /'descr': *'([^']*)'/.exec(header)?.[1]
  const extents = /'shape': *\(([0-9, L]*)\)/.exec(header)?.[1]
  if (extents === undefined || descriptor === undefined) {
    throw inputRefusal(`its header is ${JSON.stringify(header.slice(0, 80))}, want descr and shape`)
  }
  if (/'fortran_order': *True/.test(header)) {
    throw inputRefusal('it is in Fortran order; want numpy.ascontiguousarray of it')
  }
  const datatype = datatypeOf(descriptor)
  const shape = extents
    .split(',')
    .map((extent) => extent.replace('L', '').trim())
    .filter((extent) => extent !== '')
    .map(Number)
  const data = bytes.subarray(start)
  const want = elementCount(shape) * (DATATYPES[datatype].itemSize ?? 0)
  if (data.byteLength !== want) {
    throw inputRefusal(
      `it has ${data.byteLength} bytes of data, want ${want} for [${shape.join(',')}]`,
    )
  }
  return { datatype, shape, data }
}

function readHeader(bytes: Uint8Array): { readonly header: string; readonly start: number } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const major = bytes[MAGIC.byteLength] ?? 0
  const from = major === 1 ? HEAD_BYTES : HEAD_BYTES + 2
  if (!isNpy(bytes) || major < 1 || major > 3 || bytes.byteLength < from) {
    throw inputRefusal('it does not begin as a file of NumPy does')
  }
  const length = major === 1 ? view.getUint16(8, true) : view.getUint32(8, true)
  const start = from + length
  if (start > bytes.byteLength) throw inputRefusal('its header is cut short')
  const header = new TextDecoder('latin1').decode(bytes.subarray(from, start))
  return { header, start }
}

function datatypeOf(descriptor: string): Datatype {
  // One byte has no order, and numpy writes `|` or, in old files, `<`.
  const plain = descriptor.replace(/^[|<=]/, '')
  for (const [name, known] of Object.entries(DESCRIPTORS)) {
    if (isDatatype(name) && known.slice(1) === plain) return name
  }
  throw inputRefusal(`its elements are '${descriptor}', want little-endian numbers or booleans`)
}

export function isNpyDatatype(datatype: Datatype): boolean {
  return DESCRIPTORS[datatype] !== undefined
}

/**
 * Formats a tensor as a NumPy file.
 *
 * @returns the file in parts, the last of them `data`, not copied; undefined for datatypes that NumPy does not have.
 */
export function formatNpy({
  datatype,
  shape,
  data,
}: TensorValue): readonly Uint8Array[] | undefined {
  const descriptor = DESCRIPTORS[datatype]
  if (descriptor === undefined) return undefined
  const extents = shape.length === 1 ? `${shape[0]},` : shape.join(', ')
  const text = `{'descr': '${descriptor}', 'fortran_order': False, 'shape': (${extents}), }`
  const end = Math.ceil((HEAD_BYTES + text.length + 1) / ALIGN_BYTES) * ALIGN_BYTES
  const head = new Uint8Array(end).fill(codeOf(' '))
  head.set(MAGIC)
  head.set([1, 0], MAGIC.byteLength)
  new DataView(head.buffer).setUint16(MAGIC.byteLength + 2, end - HEAD_BYTES, true)
  head.set(Uint8Array.from(text, codeOf), HEAD_BYTES)
  head[end - 1] = 0x0a
  return [head, data]
}

function codeOf(character: string): number {
  return character.charCodeAt(0)
}
