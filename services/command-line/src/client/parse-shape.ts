import { flagRefusal } from '@tutti/chassis'
import { formatShape, type Shape, shapeMatches } from '@tutti/tensor'

/**
 * Reads the value of `--shape NAME=1,3,224`: extents with commas between them.
 *
 * @throws ServeError FLAG_INVALID
 */
export function parseShape(input: string, text: string, declared: Shape): Shape {
  const shape = text
    .split(',')
    .map((extent) => (/^[0-9]{1,9}$/.test(extent) ? Number(extent) : NaN))
  if (shape.every((extent) => extent >= 0) && shapeMatches(declared, shape)) return shape
  throw flagRefusal(
    '--shape',
    `'${input}' got '${text}', want extents such as ${example(declared)} for ${formatShape(declared)}`,
  )
}

function example(declared: Shape): string {
  return declared.map((extent) => (extent === -1 ? 1 : extent)).join(',')
}
