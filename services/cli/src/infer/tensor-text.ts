import { isUtf8 } from 'node:buffer'
import { printable } from '@tutti/chassis'
import {
  bytesElements,
  DATATYPES,
  formatShape,
  type NamedTensor,
  NUMBER_READERS,
} from '@tutti/tensor'

/*
 * Tensors as people and scripts read them.
 */

type Element = number | string | boolean | null | { readonly base64: string }

function* elementsOf({ datatype, data }: NamedTensor): Generator<Element> {
  if (datatype === 'BYTES') {
    for (const element of bytesElements(data)) yield toText(element)
    return
  }
  const read = NUMBER_READERS[datatype]
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  const count = Math.floor(data.byteLength / (DATATYPES[datatype].itemSize ?? 1))
  for (let i = 0; i < count; i++) yield toElement(read?.(view, i), datatype)
}

/**
 * Converts an element for JSON, which has no NaN, infinities, or integers beyond 2^53: the first are null, the last are texts.
 */
function toElement(value: number | bigint | undefined, datatype: string): Element {
  if (datatype === 'BOOL') return value !== 0
  const number = Number(value)
  if (typeof value === 'bigint' && !Number.isSafeInteger(number)) return String(value)
  return Number.isFinite(number) ? number : null
}

function toText(element: Uint8Array): Element {
  const bytes = Buffer.from(element.buffer, element.byteOffset, element.byteLength)
  return isUtf8(bytes) ? bytes.toString('utf8') : { base64: bytes.toString('base64') }
}

/** Converts a tensor to nested arrays of its shape, for JSON. A text that is not UTF-8 becomes `{"base64": ...}`. */
export function toJsonData(tensor: NamedTensor): unknown {
  return nest([...elementsOf(tensor)], tensor.shape)
}

function nest(elements: readonly unknown[], shape: readonly number[]): unknown {
  const [first, ...rest] = shape
  if (first === undefined) return elements[0]
  if (rest.length === 0) return elements
  const size = elements.length / first
  return Array.from({ length: first }, (_, i) =>
    nest(elements.slice(i * size, (i + 1) * size), rest),
  )
}

const SHOWN_ELEMENTS = 8
const SHOWN_CHARACTERS = 200

/** Summarizes a tensor in one line: datatype, shape, and the first elements; of many numbers also least, greatest and mean. */
export function summarizeTensor(tensor: NamedTensor): string {
  const { datatype, shape } = tensor
  const first: string[] = []
  let [least, most, sum, count] = [Infinity, -Infinity, 0, 0]
  for (const element of elementsOf(tensor)) {
    count += 1
    if (first.length < SHOWN_ELEMENTS) first.push(show(element))
    if (typeof element !== 'number') continue
    least = Math.min(least, element)
    most = Math.max(most, element)
    sum += element
  }
  const more = count > first.length ? `, ... ${count} in all` : ''
  const range =
    more !== '' && most >= least ? `, ${least} to ${most}, mean ${round(sum / count)}` : ''
  return `${datatype}${formatShape(shape)}  ${first.join(', ')}${more}${range}`
}

function round(value: number): number {
  return Number(value.toPrecision(6))
}

function show(element: Element): string {
  const text = typeof element === 'number' ? String(round(element)) : JSON.stringify(element)
  return printable(text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text)
}
