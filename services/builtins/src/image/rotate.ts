import { elementCount, formatShape, type Shape } from '@tutti/tensor'
import { z } from 'zod'
import { onnxBuiltin } from '../builtin.ts'
import { MOST } from '../datatypes.ts'
import { type InputReader, refuseDims } from '../input-reader.ts'
import type { OnnxGraph, Value } from '../onnx/onnx-graph.ts'
import { MAX_OUTPUT_BYTES } from '../output-bytes.ts'
import { IMAGE, withSides } from './image-dims.ts'
import { openPictures, outputPictures } from './pixels.ts'

/** Most pixels, for each of which its place in the picture is computed as INT64. */
const MAX_PIXELS = MAX_OUTPUT_BYTES / 8
/** Degrees of a quarter turn. */
const QUARTER = 90

/** Turns pictures by quarters of a circle. */
export const rotate = onnxBuiltin({
  name: 'rotate',
  summary:
    'Turns pictures by 90, 180 or 270 degrees; an input may say how many times, such as the class that a direction network found.',
  options: z.strictObject({
    degrees: z.literal([90, 180, 270]).describe('Angle of one turn, against the clock'),
  }),
  inputs: {
    image: `any datatype but BF16, [..., H, W, C], up to ${MAX_PIXELS} pixels`,
    turns:
      'INT32 or INT64, [1] for all pictures, or with `degrees: 180` [...] for each: number of turns; not there: 1',
  },
  outputs: {
    image: 'as `image`, [..., H, W, C], or [..., W, H, C] after an odd number of quarters',
  },
  signature: ({ degrees }, inputs) => {
    const image = inputs.take('image', { ...IMAGE, datatypes: MOST })
    const { datatype, dims } = image
    if (elementCount(dims.slice(0, -1).map(Math.abs)) > MAX_PIXELS) {
      refuseDims(image, `at most ${MAX_PIXELS} pixels`)
    }
    const isHalf = degrees === 180
    const hasTurns = inputs.has('turns')
    if (hasTurns) takeTurns(inputs, isHalf ? dims.slice(0, -3) : [])
    const [height = -1, width = -1] = dims.slice(-3)
    const turned = hasTurns && height !== width ? ([-1, -1] as const) : ([width, height] as const)
    return [{ name: 'image', datatype, dims: withSides(dims, isHalf ? [height, width] : turned) }]
  },
  build: ({ degrees }, graph) => {
    const { value } = openPictures(graph, 'image')
    const [count = '', height = '', width = '', channels = ''] = graph.ops(
      'Split',
      4,
      [graph.op('Shape', [value])],
      { axis: 0, num_outputs: 4 },
    )
    const area = graph.op('Mul', [height, width])
    const quarters = quartersOf(graph, degrees / QUARTER)
    const sides =
      degrees === 180 ? { height, width } : turnedSides(graph, { height, width, quarters })
    const places = placesOf(graph, { height, width, area, quarters, sides })
    const begins = graph.op('Mul', [ranging(graph, count), area])
    const all = graph.op('Add', [places, graph.op('Unsqueeze', [begins, graph.list(1, 2)])])
    const rows = graph.op('Concat', [graph.op('Mul', [count, area]), channels], { axis: 0 })
    const pixels = graph.op('Reshape', [value, rows], { allowzero: 1 })
    outputPictures(graph, 'image', 'image', graph.op('Gather', [pixels, all], { axis: 0 }))
  },
  arithmetic: [
    {
      case: 'all',
      equals: '`numpy.rot90(x, turns * degrees / 90, axes=(-3, -2))`',
      tolerance: 'none',
    },
  ],
})

/** Takes the number of turns: one for all pictures, or one for each. @throws PortFault */
function takeTurns(inputs: InputReader, each: Shape): void {
  const turns = inputs.take('turns', { datatypes: ['INT32', 'INT64'] })
  const { dims } = turns
  const fits = (wanted: Shape): boolean =>
    wanted.length === dims.length &&
    wanted.every((extent, i) => extent === -1 || dims[i] === -1 || extent === dims[i])
  if (fits([1]) || (each.length > 0 && fits(each))) return
  refuseDims(turns, each.length === 0 ? '[1]' : `[1] or ${formatShape(each)}`)
}

/** The quarters by which each picture is turned, 0 to 3: INT64 [1], or [N]. */
function quartersOf(graph: OnnxGraph, each: number): Value {
  if (!graph.has('turns')) return graph.list(each)
  const turns = graph.op('Reshape', [graph.cast(graph.input('turns'), 'INT64'), graph.list(-1)])
  return graph.op('Mod', [graph.op('Mul', [turns, graph.list(each)]), graph.list(4)])
}

interface Sides {
  /** INT64 [1] each. */
  readonly height: Value
  readonly width: Value
}

function turnedSides(
  graph: OnnxGraph,
  { height, width, quarters }: Sides & { readonly quarters: Value },
): Sides {
  const isOdd = graph.cast(graph.op('Mod', [quarters, graph.list(2)]), 'BOOL')
  return {
    height: graph.op('Where', [isOdd, width, height]),
    width: graph.op('Where', [isOdd, height, width]),
  }
}

/** The place that each pixel of a turned picture comes from, INT64 [1 or N, rows, columns]. */
function placesOf(
  graph: OnnxGraph,
  o: Sides & { readonly area: Value; readonly quarters: Value; readonly sides: Sides },
): Value {
  const one = graph.list(1)
  const back = graph.op('Neg', [o.width])
  const cornerOf = [
    graph.list(0),
    graph.op('Sub', [o.width, one]),
    graph.op('Sub', [o.area, one]),
    graph.op('Sub', [o.area, o.width]),
  ]
  // Steps in the picture for one row, and for one column, of the turned one.
  const down = [o.width, graph.list(-1), back, one]
  const across = [one, o.width, graph.list(-1), back]
  const pick = (choices: readonly Value[]): Value => {
    const own = graph.op('Gather', [graph.op('Concat', choices, { axis: 0 }), o.quarters])
    return graph.op('Unsqueeze', [own, graph.list(1, 2)])
  }
  const rows = graph.op('Unsqueeze', [ranging(graph, o.sides.height), graph.list(0, 2)])
  const columns = graph.op('Unsqueeze', [ranging(graph, o.sides.width), graph.list(0, 1)])
  const begins = graph.op('Add', [pick(cornerOf), graph.op('Mul', [rows, pick(down)])])
  return graph.op('Add', [begins, graph.op('Mul', [columns, pick(across)])])
}

/** The whole numbers from 0 up to, but without, an INT64 [1]. */
function ranging(graph: OnnxGraph, end: Value): Value {
  const scalar = graph.op('Squeeze', [end])
  return graph.op('Range', [graph.scalar('INT64', 0), scalar, graph.scalar('INT64', 1)])
}
