import { z } from 'zod'
import { onnxBuiltin } from '../builtin.ts'
import { MAX_SIDE, PIXELS } from '../image/image-dims.ts'
import { fromFloats } from '../image/pixels.ts'
import { PortFault, refuseOption } from '../input-reader.ts'
import type { OnnxGraph, Value } from '../onnx/onnx-graph.ts'
import { type Crops, sampleCrops } from './sample-crops.ts'

const MAX_BOXES = 2 ** 20
const side = z.int().min(1).max(MAX_SIDE)

const options = z.strictObject({
  width: side.describe('Width of the crops in pixels; with `padTo: widest` the greatest one'),
  height: side.describe('Height of the crops in pixels'),
  fit: z
    .enum(['stretch', 'pad'])
    .default('stretch')
    .describe(
      'Whether a box fills its crop, or keeps its aspect ratio at the full height, with `fill` at its right. One that is too wide is made narrower',
    ),
  padTo: z
    .enum(['width', 'widest'])
    .optional()
    .describe(
      'Width of the crops of `fit: pad`: `width`, or that of the widest one of them; default `width`',
    ),
  maxBoxes: z
    .int()
    .min(1)
    .max(MAX_BOXES)
    .default(1024)
    .describe(
      'Most boxes of a request, because each takes the memory of a crop; more are an error',
    ),
  minWidth: side.optional().describe('Least width of the crops of `padTo: widest`; default 1'),
  fill: z
    .number()
    .min(0)
    .max(65_535)
    .optional()
    .describe('Value of the pixels at the right, for `fit: pad`; default 0'),
})
type CropOptions = z.output<typeof options>

/** Cuts boxes out of a picture. */
export const cropBoxes = onnxBuiltin({
  name: 'cropBoxes',
  summary: 'Cuts upright boxes out of a picture, and scales them to one size.',
  options,
  inputs: {
    image: 'UINT8, UINT16, FP16 or FP32, [H, W, C]',
    boxes:
      'FP32, FP16, INT32 or INT64, [N, 4]: corners x1, y1, x2, y2 in pixels; fractions are cut off',
  },
  outputs: {
    crops: 'as `image`, [N, height, width, C]',
    widths: 'INT64, [N]: width of each crop without what is at its right',
  },
  signature: (o, inputs) => {
    checkFit(o)
    const { datatype, dims } = inputs.take('image', { datatypes: PIXELS, rank: 3 })
    const datatypes = ['FP32', 'FP16', 'INT32', 'INT64'] as const
    const boxes = inputs.take('boxes', { datatypes, rank: 2, last: [4] })
    const count = boxes.dims[0] ?? -1
    if (count > o.maxBoxes) {
      const want = `at most the ${o.maxBoxes} boxes of the option maxBoxes`
      throw new PortFault({ path: 'inputs.boxes', got: `dims [${boxes.dims.join(',')}]`, want })
    }
    const width = o.padTo === 'widest' ? -1 : o.width
    return [
      { name: 'crops', datatype, dims: [count, o.height, width, dims[2] ?? -1] },
      { name: 'widths', datatype: 'INT64', dims: [count] },
    ]
  },
  build: (o, graph) => {
    const corners = boxSides(graph)
    const widths = ownWidths(graph, o, corners)
    const width = o.padTo === 'widest' ? widest(graph, o, widths) : graph.list(o.width)
    const crops = sampleCrops(graph, { ...corners, widths, width, height: o.height })
    const { datatype } = graph.port('image')
    const filled = o.fit === 'pad' ? fillRight(graph, o, { crops, widths, width }) : crops
    const planes = fromFloats(graph, filled, datatype)
    graph.output('crops', graph.op('Transpose', [planes], { perm: [1, 2, 3, 0] }))
    graph.output('widths', graph.cast(widths, 'INT64'))
  },
  arithmetic: [
    {
      case: 'all',
      equals:
        '`cv2.resize(image[y1:y2, x1:x2], (w, height))` with `INTER_LINEAR` of FP32, rounded with ties to even for UINT8 and UINT16; `w` is `width`, or `min(width, ceil((x2 - x1) * height / (y2 - y1)))` for `fit: pad`',
      tolerance: '1e-4 of the greatest value before rounding, and 1 from UINT8 of OpenCV',
      except:
        'a box that is partly outside, which is limited to the picture, and one without area, which is the nearest pixel',
    },
  ],
})

/** @throws PortFault for options without effect. */
function checkFit(o: CropOptions): void {
  for (const key of ['padTo', 'fill'] as const) {
    if (o[key] === undefined || o.fit === 'pad') continue
    refuseOption(key, `${o[key]} with fit stretch`, 'none, or fit pad')
  }
  if (o.minWidth === undefined) return
  if (o.padTo !== 'widest') refuseOption('minWidth', `${o.minWidth}`, 'none, or padTo widest')
  if (o.minWidth > o.width)
    refuseOption('minWidth', `${o.minWidth}`, `at most the width, ${o.width}`)
}

/** The boxes within the picture, FP64 [N] each. */
function boxSides(graph: OnnxGraph): Omit<Crops, 'widths' | 'width' | 'height'> {
  // By way of whole numbers, which cuts fractions off as NumPy does.
  const whole = graph.cast(graph.cast(graph.input('boxes'), 'INT64'), 'FP64')
  const [x1 = '', y1 = '', x2 = '', y2 = ''] = graph
    .ops('Split', 4, [whole], { axis: 1, num_outputs: 4 })
    .map((column) => graph.op('Squeeze', [column, graph.list(1)]))
  const shape = graph.cast(graph.op('Shape', [graph.input('image')]), 'FP64')
  const extent = (axis: number): Value => graph.op('Gather', [shape, graph.scalar('INT64', axis)])
  const one = graph.scalar('FP64', 1)
  const span = (low: Value, high: Value, all: Value): readonly [Value, Value] => {
    const last = graph.op('Sub', [all, one])
    const start = graph.op('Min', [graph.op('Max', [low, graph.scalar('FP64', 0)]), last])
    const end = graph.op('Min', [high, all])
    return [start, graph.op('Max', [graph.op('Sub', [end, start]), one])]
  }
  const [left, across] = span(x1, x2, extent(1))
  const [top, along] = span(y1, y2, extent(0))
  return { left, top, across, along }
}

/** The width of each crop without what is at its right, FP64 [N]. */
function ownWidths(
  graph: OnnxGraph,
  o: CropOptions,
  { across, along }: Pick<Crops, 'across' | 'along'>,
): Value {
  const most = graph.scalar('FP64', o.width)
  if (o.fit === 'stretch') return graph.op('Expand', [most, graph.op('Shape', [across])])
  const scaled = graph.op('Mul', [across, graph.scalar('FP64', o.height)])
  return graph.op('Min', [graph.op('Ceil', [graph.op('Div', [scaled, along])]), most])
}

/** INT64 [1]. */
function widest(graph: OnnxGraph, o: CropOptions, widths: Value): Value {
  const least = graph.constant('FP64', [o.minWidth ?? 1])
  const all = graph.op('Concat', [widths, least], { axis: 0 })
  return graph.cast(graph.op('ReduceMax', [all]), 'INT64')
}

function fillRight(
  graph: OnnxGraph,
  { fill = 0 }: CropOptions,
  {
    crops,
    widths,
    width,
  }: { readonly crops: Value; readonly widths: Value; readonly width: Value },
): Value {
  const end = graph.op('Squeeze', [width])
  const columns = graph.op('Range', [graph.scalar('INT64', 0), end, graph.scalar('INT64', 1)])
  const own = graph.op('Unsqueeze', [graph.cast(widths, 'INT64'), graph.list(1)])
  const isInside = graph.op('Unsqueeze', [graph.op('Less', [columns, own]), graph.list(1)])
  return graph.op('Where', [isInside, crops, graph.scalar('FP32', fill)])
}
