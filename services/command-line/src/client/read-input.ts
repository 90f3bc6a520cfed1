import { basename } from 'node:path'
import { ServeError } from '@tutti/errors'
import { isNpy, parseNpy } from '@tutti/formats'
import { parseTensorData, type ReceivedTensorMetadata } from '@tutti/protocol'
import {
  DATATYPES,
  type Elements,
  encodeBytesTensor,
  fitShape,
  formatShape,
  inputRefusal,
  type NamedTensor,
  nestedElements,
  oneElement,
  type Shape,
  type TensorValue,
} from '@tutti/tensor'
import { decodePicture, isPng } from './picture.ts'

/** The source of an input of a model, as `--input` gives it. */
export type GivenInput =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'file'; readonly name: string; readonly bytes: Uint8Array }

const PICTURES = /\.(png|jpe?g|webp|gif|bmp|tiff?)$/i

/**
 * Converts the source of one input to a tensor.
 *
 * @param declared - the input of the model's metadata, with the shape of `--shape` if there is one.
 * @returns a tensor that may view the file's bytes.
 * @throws ServeError INVALID_REQUEST that names the input, the value and the wanted form.
 */
export function readInput(declared: ReceivedTensorMetadata, source: GivenInput): NamedTensor {
  const { name } = declared
  try {
    const value =
      source.kind === 'literal' ? fromText(declared, source.text) : fromFile(declared, source)
    return { name, ...value }
  } catch (error) {
    const { reason, message } = ServeError.from(error)
    // `fitShape` and JSON's texts name the input themselves.
    const where = source.kind === 'file' ? ` (${basename(source.name)})` : ''
    const text = message.startsWith(`input '${name}'`)
      ? message
      : `input '${name}'${where}: ${message}`
    throw new ServeError(reason, text, { details: { field: name }, cause: error })
  }
}

function fromFile(
  declared: ReceivedTensorMetadata,
  { name, bytes }: { name: string; bytes: Uint8Array },
) {
  const { datatype, shape } = declared
  if (isNpy(bytes)) return fromNpy(declared, bytes)
  if (/\.npy$/i.test(name)) throw inputRefusal('it does not begin as a file of NumPy does')
  if (/\.json$/i.test(name)) return fromText(declared, textOf(bytes))
  if (datatype === 'BYTES') return fromElement(declared, bytes)
  if (isPng(bytes) && datatype === 'UINT8') {
    const value = decodePicture(bytes, shape)
    const count = value.data.byteLength
    return { ...value, shape: fit(declared.name, shape, { count, shape: value.shape }) }
  }
  if (PICTURES.test(name) || isPng(bytes)) {
    throw inputRefusal(
      `a picture for ${datatype}${formatShape(shape)}: want ${datatype === 'UINT8' ? 'a PNG' : 'UINT8 to decode it'}, or the values as .npy`,
    )
  }
  return fromRaw(declared, bytes)
}

function fromNpy(
  { name, datatype, shape }: ReceivedTensorMetadata,
  bytes: Uint8Array,
): TensorValue {
  const value = parseNpy(bytes)
  if (value.datatype !== datatype) {
    throw inputRefusal(`got ${value.datatype}, want ${datatype}: in NumPy, astype changes it`)
  }
  const count = value.data.byteLength / (DATATYPES[datatype].itemSize ?? 1)
  return { ...value, shape: fit(name, shape, { count, shape: value.shape }) }
}

function fromRaw({ name, datatype, shape }: ReceivedTensorMetadata, data: Uint8Array): TensorValue {
  const itemSize = DATATYPES[datatype].itemSize ?? 1
  const count = data.byteLength / itemSize
  if (!Number.isInteger(count)) {
    throw inputRefusal(
      `got ${data.byteLength} bytes, want a multiple of ${itemSize} for ${datatype}`,
    )
  }
  return { datatype, shape: fit(name, shape, { count }), data }
}

function fromElement({ name, shape }: ReceivedTensorMetadata, element: Uint8Array): TensorValue {
  return {
    datatype: 'BYTES',
    shape: ofOne(name, shape),
    data: encodeBytesTensor([element]),
  }
}

function fit(name: string, declared: Shape, elements: Elements): Shape {
  return fitShape(name, declared, { ...elements, hint: `, or --shape ${name}=...` })
}

function ofOne(name: string, declared: Shape): Shape {
  return fit(name, declared, oneElement(declared))
}

/** Reads JSON; for BYTES, any other text is an element as it stands. */
function fromText(declared: ReceivedTensorMetadata, text: string): TensorValue {
  const { name, datatype, shape } = declared
  const value = parseJsonText(text)
  if (datatype === 'BYTES' && !isTexts(value)) return fromElement(declared, Buffer.from(text))
  if (value === undefined)
    throw inputRefusal(`got ${quote(text)}, want JSON: a number, or an array`)
  const data: readonly unknown[] = Array.isArray(value) ? value : [value]
  const isOne = !Array.isArray(value)
  const fitted = isOne ? ofOne(name, shape) : fit(name, shape, nestedElements(data))
  const dataText = () => (isOne ? `[${text}]` : text)
  const json = { name, datatype, shape: fitted, data, hasNames: false, dataText }
  return { datatype, shape: fitted, data: parseTensorData(json) }
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.flat(64).every((one) => typeof one === 'string')
}

function parseJsonText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The caller says what was wanted.
    return undefined
  }
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}

const SHOWN = 40

function quote(text: string): string {
  return JSON.stringify(text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text)
}
