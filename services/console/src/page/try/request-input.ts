import { isNpy, parseNpy, pictureLayout } from '@tutti/formats'
import {
  DATATYPES,
  type Datatype,
  encodeBytesTensor,
  fitShape,
  inputRefusal,
  isDatatype,
  nestedElements,
  oneElement,
  type Shape,
} from '@tutti/tensor'
import type { Tensor } from '../../api/model-detail.ts'
import { encodeNumbers } from './encode-numbers.ts'
import { type DrawPixels, pixelValues, type Scale } from './pixel-values.ts'

/** The content of the form for one input. */
export interface Draft {
  readonly text: string
  /** File that replaces the text. */
  readonly file?: DraftFile | undefined
  /** Scale of a picture that becomes floating-point numbers. */
  readonly scale: Scale
  readonly isTouched: boolean
}

export interface DraftFile {
  readonly name: string
  readonly bytes: Uint8Array
  /** Decoded picture; absent if the file is none that the browser can decode. */
  readonly picture?: FilePicture | undefined
}

export interface FilePicture {
  readonly width: number
  readonly height: number
  readonly draw: DrawPixels
}

/** The file from which another client reads the bytes of an input. */
export interface InputFile {
  /** A name without a folder. */
  readonly file: string
  /** Bytes of the file before those of the tensor. */
  readonly skip: number
  /** True if the whole file is the one element of a BYTES tensor. */
  readonly isElement: boolean
  /** True if the page made the bytes: the user has no such file yet. */
  readonly isMade: boolean
}

/** One input of a request. Its elements are in the JSON as the user wrote them, or bytes behind it. */
export interface RequestInput {
  readonly name: string
  readonly datatype: Datatype
  readonly shape: Shape
  readonly content:
    | { readonly kind: 'json'; readonly text: string }
    | { readonly kind: 'bytes'; readonly data: Uint8Array; readonly source: InputFile }
}

type Made = Pick<RequestInput, 'shape' | 'content'>

/**
 * Makes an input of a request from the form; undefined for an optional input that the user left empty.
 *
 * @throws ServeError INVALID_REQUEST that says what came and what is wanted.
 */
export function toRequestInput(declared: Tensor, draft: Draft): RequestInput | undefined {
  const { name, datatype, isOptional } = declared
  if (!isDatatype(datatype)) throw inputRefusal(`datatype '${datatype}' is not known`, name)
  const { file, text } = draft
  if (file === undefined && text.trim() === '' && isOptional) return undefined
  const made =
    file === undefined
      ? fromText(declared, datatype, text)
      : fromFile(declared, datatype, { ...file, scale: draft.scale })
  return { name, datatype, ...made }
}

/** Reads JSON; for BYTES, any other text is an element as it stands. */
function fromText({ name, shape }: Tensor, datatype: Datatype, text: string): Made {
  const value = parseJson(text)
  if (datatype === 'BYTES' && !isTexts(value)) {
    return inJson(JSON.stringify([text]), fitShape(name, shape, oneElement(shape)))
  }
  if (value === undefined)
    throw inputRefusal(`got ${quote(text)}, want JSON: a number, or an array`)
  const data: readonly unknown[] = Array.isArray(value) ? value : [value]
  const elements = Array.isArray(value) ? nestedElements(data) : oneElement(shape)
  const fitted = fitShape(name, shape, { ...elements, hint: ' in nested arrays' })
  if (datatype !== 'FP16' && datatype !== 'BF16') {
    // As written, so that integers keep all their digits.
    return inJson(Array.isArray(value) ? text : `[${text}]`, fitted)
  }
  const numbers = data.flat(Number.POSITIVE_INFINITY)
  if (!numbers.every((one) => typeof one === 'number')) throw inputRefusal('want numbers only')
  return inBytes(encodeNumbers(datatype, numbers), fitted, madeFile(`${name}.raw`))
}

function fromFile(
  declared: Tensor,
  datatype: Datatype,
  file: DraftFile & { readonly scale: Scale },
): Made {
  const { name, shape } = declared
  const { bytes, picture } = file
  if (isNpy(bytes)) {
    const value = parseNpy(bytes)
    if (value.datatype !== datatype) {
      throw inputRefusal(`got ${value.datatype}, want ${datatype}: in NumPy, astype changes it`)
    }
    const count = value.data.byteLength / (DATATYPES[datatype].itemSize ?? 1)
    const skip = bytes.byteLength - value.data.byteLength
    const fitted = fitShape(name, shape, { count, shape: value.shape })
    return inBytes(value.data, fitted, { ...sourceOf(file), skip })
  }
  if (/\.json$/i.test(file.name)) {
    return fromText(declared, datatype, new TextDecoder().decode(bytes))
  }
  if (datatype === 'BYTES') {
    const fitted = fitShape(name, shape, oneElement(shape))
    return inBytes(encodeBytesTensor([bytes]), fitted, { ...sourceOf(file), isElement: true })
  }
  if (picture !== undefined && (shape.length > 2 || datatype !== 'UINT8')) {
    return fromPicture(declared, datatype, { picture, scale: file.scale })
  }
  const count = bytes.byteLength / (DATATYPES[datatype].itemSize ?? 1)
  if (!Number.isInteger(count)) {
    throw inputRefusal(`got ${bytes.byteLength} bytes, want whole elements of ${datatype}`)
  }
  const hint = ', or a .npy file, which has a shape'
  return inBytes(bytes, fitShape(name, shape, { count, shape: [count], hint }), sourceOf(file))
}

/** Checks whether the pixels of a picture, not the bytes of its file, become the elements of a tensor. */
export function isDecoded({ datatype, shape }: Tensor): boolean {
  return datatype !== 'BYTES' && shape.length > 2 && pictureLayout(shape) !== undefined
}

function fromPicture(
  declared: Tensor,
  datatype: Datatype,
  { picture, scale }: { readonly picture: FilePicture; readonly scale: Scale },
): Made {
  const { name, shape } = declared
  const layout = isDecoded(declared) ? pictureLayout(shape) : undefined
  if (layout === undefined) {
    const want = 'want a shape with 1, 3 or 4 channels for a picture, or a file of its elements'
    throw inputRefusal(`${datatype} [${shape.join(', ')}], ${want}`)
  }
  const { channels, isPlanar } = layout
  const height = layout.height === -1 ? picture.height : layout.height
  const width = layout.width === -1 ? picture.width : layout.width
  const values = pixelValues(picture.draw(width, height), { channels, isPlanar, datatype, scale })
  const written = isPlanar ? [channels, height, width] : [height, width, channels]
  // A batch of one.
  const fitted = shape.length === 4 ? [1, ...written] : written
  return inBytes(encodeNumbers(datatype, values), fitted, madeFile(`${name}.raw`))
}

function inJson(text: string, shape: Shape): Made {
  return { shape, content: { kind: 'json', text } }
}

function inBytes(data: Uint8Array, shape: Shape, source: InputFile): Made {
  return { shape, content: { kind: 'bytes', data, source } }
}

function sourceOf({ name }: DraftFile): InputFile {
  return { file: name, skip: 0, isElement: false, isMade: false }
}

/** Names a file for a tensor. A tensor's name may have any characters, a file's not; two names are never one file. */
function madeFile(name: string): InputFile {
  const file = name.replace(/[^\w.-]/gu, (one) =>
    [...new TextEncoder().encode(one)]
      .map((byte) => `=${byte.toString(16).padStart(2, '0')}`)
      .join(''),
  )
  return { file, skip: 0, isElement: false, isMade: true }
}

function isTexts(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.flat(Number.POSITIVE_INFINITY).every((one) => typeof one === 'string')
  )
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The caller says what was wanted.
    return undefined
  }
}

function quote(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text)
}

/** Most elements that a form begins with: more would be no help. */
const MOST_ZEROS = 64

/** Makes the draft that the form begins with: zeros, if they are few, so that a first request can be sent at once. */
export function firstDraft({ datatype, shape, isOptional }: Tensor): Draft {
  const extents = shape.map((extent) => (extent === -1 ? 1 : extent))
  const count = extents.reduce((product, extent) => product * extent, 1)
  const isEmpty = isOptional || datatype === 'BYTES' || count > MOST_ZEROS
  const text = isEmpty ? '' : zeros(extents, datatype === 'BOOL' ? 'false' : '0')
  return { text, scale: '0 to 255', isTouched: false }
}

function zeros([first, ...rest]: readonly number[], zero: string): string {
  if (first === undefined) return zero
  return `[${Array.from({ length: first }, () => zeros(rest, zero)).join(', ')}]`
}
