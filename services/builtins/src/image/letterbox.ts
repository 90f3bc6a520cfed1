import { z } from 'zod'
import { onnxBuiltin } from '../builtin.ts'
import type { Value } from '../onnx/onnx-graph.ts'
import { checkConstant, padValues } from '../operands.ts'
import { MAX_SIDE, takePictures, withSides } from './image-dims.ts'
import {
  checkInterpolation,
  checkScaled,
  interpolate,
  interpolateOptions,
  SCALED_BOUND,
} from './interpolate.ts'
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
    image: `as \`image\`, [..., height, width, C]: ${SCALED_BOUND}`,
    scale: 'FP32, [2]: factor of both sides, for `scaleBoxes`',
    pad: 'FP32, [2]: pixels left of the picture and above it',
    size: 'INT64, [2]: height and width of the input',
  },
  signature: (o, inputs) => {
    checkInterpolation(o)
    const pictures = takePictures(inputs, 'image')
    const { datatype } = pictures
    const dims = withSides(pictures.dims, [o.height, o.width])
    checkScaled(pictures, dims, o)
    checkConstant('fill', o.fill, datatype)
    return [
      { name: 'image', datatype, dims },
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
    const after = graph.op('Sub', [rest, before])
    const pads = graph.cast(graph.op('Concat', [before, after], { axis: 0 }), 'INT64')
    const border = { pads, axes: [1, 2], mode: 'constant', value: o.fill } as const
    const { datatype } = pictures
    outputPictures(graph, 'image', 'image', padValues(graph, resized, { datatype, ...border }))
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
