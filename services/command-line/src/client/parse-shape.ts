import { flagRefusal } from '@tutti/chassis'
import { formatShape, type Shape, shapeMatches } from '@tutti/tensor'

/**
 * Parses the extents of `--shape NAME=1,3,224`, which commas separate.
 *
 * @param declared - shape of the model's input, where -1 stands for any extent.
 * @throws ServeError FLAG_INVALID for other texts, and for extents that do not fit the declared shape.
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
