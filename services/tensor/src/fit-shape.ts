import { formatShape } from './error-texts.ts'
import { inputRefusal } from './input-refusal.ts'
import { elementCount, type Shape, shapeMatches } from './tensor.ts'

/** The facts that are known of the elements that came. */
export interface Elements {
  readonly count: number
  /** As they are written, where that has a shape: nested arrays, a file of NumPy, a picture. */
  readonly shape?: Shape
  /** The advice for its user if several extents are open. */
  readonly hint?: string
}

/**
 * The shape of a request's tensor: as it is written if that fits what the model declares, with a batch of one before it if the model
 * wants that, or else what the number of elements leaves for the one extent that is open.
 *
 * @param declared - of the model's metadata; -1 for any extent.
 * @throws ServeError INVALID_REQUEST that says what came and what is wanted.
 */
export function fitShape(input: string, declared: Shape, elements: Elements): Shape {
  const { count, shape, hint = '' } = elements
  const candidates = shape === undefined ? [] : [shape, [1, ...shape]]
  const written = candidates.find(
    (one, i) => shapeMatches(declared, one) && (i === 0 || declared[0] === -1),
  )
  if (written !== undefined) return written
  // A list of numbers is as good as bytes; nested arrays mean what they say.
  const isFlat = shape === undefined || shape.length <= 1
  const filled = isFlat ? fill(declared, count) : undefined
  if (filled !== undefined) return filled
  const got = shape === undefined ? `${count} elements` : `shape ${formatShape(shape)}`
  const isOpen = isFlat && declared.filter((extent) => extent === -1).length > 1
  const more = isOpen ? hint : ''
  throw inputRefusal(`input '${input}': got ${got}, want ${formatShape(declared)}${more}`, input)
}

/** With the one open extent from the number of elements; undefined if that leaves none, or several are open. */
function fill(declared: Shape, count: number): Shape | undefined {
  const known = declared.filter((extent) => extent !== -1)
  const rest = elementCount(known)
  if (known.length === declared.length) return rest === count ? declared : undefined
  const isOpen = known.length === declared.length - 1 && rest > 0 && count % rest === 0
  return isOpen ? declared.map((extent) => (extent === -1 ? count / rest : extent)) : undefined
}

/** Makes the elements of one value: each extent that is open is 1. */
export function oneElement(declared: Shape): Elements {
  const shape = declared.map((extent) => (extent === -1 ? 1 : extent))
  return elementCount(shape) === 1 ? { count: 1, shape } : { count: 1 }
}

/** Tensors have fewer dimensions. */
const MOST_DIMENSIONS = 32

/** Counts the elements of nested arrays, such as JSON has. @throws ServeError INVALID_REQUEST if they are not as long as their siblings. */
export function nestedElements(data: readonly unknown[]): Elements {
  const shape = shapeOf(data, 1)
  return { count: elementCount(shape), shape }
}

function shapeOf(data: readonly unknown[], depth: number): Shape {
  if (depth > MOST_DIMENSIONS) throw inputRefusal(`its arrays nest deeper than ${MOST_DIMENSIONS}`)
  // Most arrays are the innermost, which may be long.
  if (!data.some(Array.isArray)) return [data.length]
  const inner = data.map((one) => (Array.isArray(one) ? shapeOf(one, depth + 1) : []))
  const [first = []] = inner
  if (inner.some((one) => formatShape(one) !== formatShape(first))) {
    throw inputRefusal('its arrays are not of one length')
  }
  return [data.length, ...first]
}
