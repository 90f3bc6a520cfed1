import { z } from 'zod'
import { onnxBuiltin } from '../builtin.ts'
import { checkPad, padValues } from '../operands.ts'
import { MAX_SIDE, takePictures, withSides } from './image-dims.ts'
import { openPictures, outputPictures } from './pixels.ts'
import { toXY } from './target-size.ts'

/** Adds pixels to pictures for networks that want sides of a multiple. */
export const padToMultiple = onnxBuiltin({
  name: 'padToMultiple',
  summary:
    'Adds pixels around pictures so that both sides are a multiple of a number; `crop` takes them away again.',
  options: z.strictObject({
    multipleOf: z
      .int()
      .min(1)
      .max(MAX_SIDE)
      .describe('Both sides become a multiple of so many pixels'),
    center: z
      .boolean()
      .default(false)
      .describe('Whether the picture is in the middle, or at the top left'),
    mode: z
      .enum(['constant', 'edge'])
      .default('constant')
      .describe('The added pixels: `value`, or the nearest pixel'),
    value: z.number().optional().describe('Value of the added pixels of `constant`; default 0'),
  }),
  inputs: { image: 'UINT8, UINT16, FP16 or FP32, [..., H, W, C]' },
  outputs: {
    image: 'as `image`, with the new height and width',
    box: 'FP32, [4]: corners x1, y1, x2, y2 of the picture in it, for `crop`',
  },
  signature: ({ multipleOf, mode, value }, inputs) => {
    const { datatype, dims } = takePictures(inputs, 'image')
    checkPad({ mode, value }, datatype)
    const full = (extent = -1): number =>
      extent === -1 ? -1 : Math.ceil(extent / multipleOf) * multipleOf
    const sides = [full(dims.at(-3)), full(dims.at(-2))] as const
    return [
      { name: 'image', datatype, dims: withSides(dims, sides) },
      { name: 'box', datatype: 'FP32', dims: [4] },
    ]
  },
  build: ({ multipleOf, center, mode, value }, graph) => {
    const { value: pictures, sides, datatype } = openPictures(graph, 'image')
    const height = graph.cast(sides, 'INT64')
    const rest = graph.op('Mod', [graph.op('Neg', [height]), graph.list(multipleOf)])
    const before = center ? graph.op('Div', [rest, graph.list(2)]) : graph.list(0, 0)
    const pads = graph.op('Concat', [before, graph.op('Sub', [rest, before])], { axis: 0 })
    const padded = padValues(graph, pictures, { datatype, pads, axes: [1, 2], mode, value })
    outputPictures(graph, 'image', 'image', padded)
    const corners = [before, graph.op('Add', [before, height])].map((corner) => toXY(graph, corner))
    graph.output('box', graph.cast(graph.op('Concat', corners, { axis: 0 }), 'FP32'))
  },
  arithmetic: [
    {
      case: 'all',
      equals:
        '`numpy.pad(x, ((top, dh - top), (left, dw - left), (0, 0)), mode)` with `dh = -H % multipleOf`, `dw = -W % multipleOf`, and `top, left = dh // 2, dw // 2`, or 0 without `center`',
      tolerance: 'none',
    },
  ],
})
