import { elementCount, formatShape, type Shape, shapeMatches } from '@tutti/tensor'
import { refused } from './refused.ts'

/** What is known of the elements that came. */
export interface Elements {
  readonly count: number
  /** As they are written, where that has a shape: nested arrays, a file of NumPy, a picture. */
  readonly shape?: Shape
}

/**
 * The shape of a request's tensor: as it is written if that fits what the model declares, with a batch of one before it if the model
 * wants that, or else what the number of elements leaves for the one extent that is open.
 *
 * @param declared - of the model's metadata; -1 for any extent.
 * @throws ServeError INVALID_REQUEST that says what came and what is wanted.
 */
export function fitShape(input: string, declared: Shape, elements: Elements): Shape {
  const { count, shape } = elements
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
  const hint = isOpen ? `, or --shape ${input}=...` : ''
  throw refused(`input '${input}': got ${got}, want ${formatShape(declared)}${hint}`, input)
}

/** With the one open extent from the number of elements; undefined if that leaves none, or several are open. */
function fill(declared: Shape, count: number): Shape | undefined {
  const known = declared.filter((extent) => extent !== -1)
  const rest = elementCount(known)
  if (known.length === declared.length) return rest === count ? declared : undefined
  const isOpen = known.length === declared.length - 1 && rest > 0 && count % rest === 0
  return isOpen ? declared.map((extent) => (extent === -1 ? count / rest : extent)) : undefined
}

/**
 * Reads the value of `--shape NAME=1,3,224`: extents with commas between them.
 *
 * @throws ServeError INVALID_REQUEST
 */
export function parseShape(input: string, text: string, declared: Shape): Shape {
  const shape = text
    .split(',')
    .map((extent) => (/^[0-9]{1,9}$/.test(extent) ? Number(extent) : NaN))
  if (shape.every((extent) => extent >= 0) && shapeMatches(declared, shape)) return shape
  throw refused(
    `--shape of '${input}': got '${text}', want extents such as ${example(declared)} for ${formatShape(declared)}`,
    input,
  )
}

function example(declared: Shape): string {
  return declared.map((extent) => (extent === -1 ? 1 : extent)).join(',')
}
