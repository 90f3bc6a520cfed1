import {
  bytesElements,
  DATATYPES,
  ELEMENT_READERS,
  elementCount,
  type NamedTensor,
} from '@tutti/tensor'

/** Elements of a tensor in a trace: more would stall the server, and nobody reads them. */
const MAX_ELEMENTS = 4096
/** Bytes of one text among the elements. */
const MAX_TEXT_BYTES = 256

/**
 * Converts a tensor for a trace. Data is cut after `MAX_ELEMENTS`, with `...` at the end. It may be anything, as nobody has
 * checked it yet: elements that are cut short are left out.
 */
export function tracedTensor({ name, datatype, shape, data }: NamedTensor) {
  const isCut = elementCount(shape) > MAX_ELEMENTS
  const words = datatype === 'BYTES' ? textsOf(data) : numbersOf({ datatype, shape, data })
  const text = isCut ? [...words, '...'] : words
  return { name, data: text.join(','), shape: shape.join(','), dtype: datatype }
}

function textsOf(data: Uint8Array): readonly string[] {
  const texts: string[] = []
  try {
    for (const element of bytesElements(data)) {
      if (texts.length === MAX_ELEMENTS) break
      texts.push(`"${Buffer.from(element.subarray(0, MAX_TEXT_BYTES)).toString('utf8')}"`)
    }
  } catch {
    // The request is refused for it, with its text.
  }
  return texts
}

function numbersOf({
  datatype,
  shape,
  data,
}: Pick<NamedTensor, 'datatype' | 'shape' | 'data'>): readonly string[] {
  const read = ELEMENT_READERS[datatype]
  if (read === undefined) return []
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  const whole = Math.floor(data.byteLength / (DATATYPES[datatype].itemSize ?? 1))
  const count = Math.min(elementCount(shape), whole, MAX_ELEMENTS)
  return Array.from({ length: count }, (_, i) => String(read(view, i)))
}
