import { formatShape } from './error-texts.ts'
import { inputRefusal } from './input-refusal.ts'
import { elementCount, type Shape, shapeMatches } from './tensor.ts'

/** Facts about the elements of a tensor that a user wrote. */
export interface Elements {
  readonly count: number
  /** Shape of the elements as they are written, where they have one: nested arrays, a NumPy file, a picture. */
  readonly shape?: Shape
  /** Advice that an error adds if several extents are open. */
  readonly hint?: string
}

/**
 * Finds the shape of a request's tensor. It is the shape as written, if that fits what the model declares, after a batch of one
 * is added where the model wants it. Otherwise the number of elements gives the extent that is open, if there is only one.
 *
 * @param declared - shape from the model's metadata; -1 for any extent.
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

/** Fills the one open extent from the number of elements; undefined if that leaves none, or several are open. */
function fill(declared: Shape, count: number): Shape | undefined {
  const known = declared.filter((extent) => extent !== -1)
  const rest = elementCount(known)
  if (known.length === declared.length) return rest === count ? declared : undefined
  const isOpen = known.length === declared.length - 1 && rest > 0 && count % rest === 0
  return isOpen ? declared.map((extent) => (extent === -1 ? count / rest : extent)) : undefined
}

/** Describes a tensor of one value: each open extent of its shape is 1. */
export function oneElement(declared: Shape): Elements {
  const shape = declared.map((extent) => (extent === -1 ? 1 : extent))
  return elementCount(shape) === 1 ? { count: 1, shape } : { count: 1 }
}

/** Tensors have fewer dimensions. */
const MOST_DIMENSIONS = 32

/**
 * Counts the elements of nested arrays, such as JSON has.
 *
 * @throws ServeError INVALID_REQUEST if sibling arrays differ in length.
 */
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
