import type { Datatype } from '@tutti/tensor'
import { z } from 'zod'
import { onnxBuiltin } from '../builtin.ts'
import { refuseOption } from '../input-reader.ts'
import type { OnnxGraph, Value } from '../onnx/onnx-graph.ts'
import { MAX_SIDE, takePictures, withSides } from './image-dims.ts'
import { checkInterpolation, interpolate, interpolateOptions } from './interpolate.ts'
import { openPictures, outputPictures } from './pixels.ts'
import { toXY } from './target-size.ts'

const side = z.int().min(1).max(MAX_SIDE)
/** The widths of both borders of a side differ by one at most; a half goes to the second one, as Ultralytics has it. */
const BEFORE_HALF = 0.1

/** Fits pictures into a size without changing their aspect ratio. */
export const letterbox = onnxBuiltin({
  name: 'letterbox',
  summary: 'Scales pictures so that they fit into a size, and fills the rest of it.',
  options: z.strictObject({
    width: side.describe('Width of the output in pixels'),
    height: side.describe('Height of the output in pixels'),
    fill: z.number().min(0).max(65_535).default(114).describe('Value of the pixels around'),
    center: z
      .boolean()
      .default(true)
      .describe('Whether the picture is in the middle, or at the top left'),
    enlarge: z.boolean().default(true).describe('Whether small pictures are enlarged'),
    ...interpolateOptions,
  }),
  inputs: { image: 'UINT8, UINT16, FP16 or FP32, [..., H, W, C]' },
  outputs: {
    image: 'as `image`, [..., height, width, C]',
    scale: 'FP32, [2]: factor of both sides, for `scaleBoxes`',
    pad: 'FP32, [2]: pixels left of the picture and above it',
    size: 'INT64, [2]: height and width of the input',
  },
  signature: (o, inputs) => {
    checkInterpolation(o)
    const { datatype, dims } = takePictures(inputs, 'image')
    const isWhole = datatype.startsWith('UINT')
    if (isWhole && (!Number.isInteger(o.fill) || (datatype === 'UINT8' && o.fill > 255))) {
      refuseOption('fill', `${o.fill}`, `a value that ${datatype} has`)
    }
    return [
      { name: 'image', datatype, dims: withSides(dims, [o.height, o.width]) },
      { name: 'scale', datatype: 'FP32', dims: [2] },
      { name: 'pad', datatype: 'FP32', dims: [2] },
      { name: 'size', datatype: 'INT64', dims: [2] },
    ]
  },
  build: (o, graph) => {
    const pictures = openPictures(graph, 'image')
    const double = (value: number): Value => graph.scalar('FP64', value)
    const target = graph.constant('FP64', [o.height, o.width])
    const fitting = graph.op('ReduceMin', [graph.op('Div', [target, pictures.sides])])
    const scale = o.enlarge ? fitting : graph.op('Min', [fitting, double(1)])
    const exact = graph.op('Round', [graph.op('Mul', [pictures.sides, scale])])
    const sides = graph.op('Max', [exact, double(1)])
    const rest = graph.op('Sub', [target, sides])
    const middle = graph.op('Sub', [graph.op('Mul', [rest, double(0.5)]), double(BEFORE_HALF)])
    // Not below 0, which -0.1 rounds to.
    const half = graph.op('Max', [graph.op('Round', [middle]), double(0)])
    const before = o.center ? half : graph.constant('FP64', [0, 0])
    const resized = interpolate(graph, pictures, graph.cast(sides, 'INT64'), o)
    const image = fillAround(graph, resized, { ...pictures, before, rest, fill: o.fill })
    outputPictures(graph, 'image', 'image', image)
    const one = graph.op('Expand', [scale, graph.list(2)])
    graph.output('scale', graph.cast(one, 'FP32'))
    graph.output('pad', graph.cast(toXY(graph, before), 'FP32'))
    graph.output('size', graph.cast(pictures.sides, 'INT64'))
  },
  arithmetic: [
    {
      case: 'all',
      equals:
        'the `LetterBox` of Ultralytics: `cv2.resize` to `round(W * r)`, `round(H * r)` with `r = min(height / H, width / W)`, then `cv2.copyMakeBorder` by `round(d / 2 - 0.1)` at the left and at the top',
      tolerance: 'that of `resize` for the pixels; none for the sides',
    },
  ],
})

interface Border {
  readonly datatype: Datatype
  /** Rows above and columns at the left, FP64 [2]. */
  readonly before: Value
  /** Rows and columns that are added, FP64 [2]. */
  readonly rest: Value
  readonly fill: number
}

/** Adds rows and columns around [N, h, w, C]. */
function fillAround(
  graph: OnnxGraph,
  image: Value,
  { datatype, before, rest, fill }: Border,
): Value {
  const after = graph.op('Sub', [rest, before])
  const pads = graph.cast(graph.op('Concat', [before, after], { axis: 0 }), 'INT64')
  const isByte = datatype === 'UINT8'
  const wide = isByte ? image : graph.cast(image, 'FP32')
  const value = graph.scalar(isByte ? 'UINT8' : 'FP32', fill)
  const padded = graph.op('Pad', [wide, pads, value, graph.list(1, 2)], { mode: 'constant' })
  return isByte ? padded : graph.cast(padded, datatype)
}
