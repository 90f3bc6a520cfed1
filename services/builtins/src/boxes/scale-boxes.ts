import { z } from 'zod'
import { MAX_RANK } from '../axes.ts'
import { onnxBuiltin } from '../builtin.ts'
import { FLOATS } from '../datatypes.ts'
import { type InputReader, refuseDims } from '../input-reader.ts'

/** Brings boxes back into the picture that was scaled. */
export const scaleBoxes = onnxBuiltin({
  name: 'scaleBoxes',
  summary:
    'Moves boxes or points from a scaled picture back into the picture itself: undoes `letterbox` and `resize`.',
  options: z.strictObject({}),
  inputs: {
    boxes: 'FP16, FP32 or FP64, [..., 4] for corners, or [..., 2] for points',
    scale: 'a float, [2] for x and y, or [1] for both: as `letterbox` and `resize` have it',
    pad: 'a float, [2] or [1]: pixels left and above; not there: 0',
    size: 'INT32 or INT64, [2]: height and width of the picture, to which boxes are limited; not there: no limit',
  },
  outputs: { boxes: 'as `boxes`' },
  signature: (_options, inputs) => {
    const boxes = inputs.take('boxes', { datatypes: FLOATS, rank: [1, MAX_RANK] })
    const { datatype, dims } = boxes
    if (![-1, 2, 4].includes(dims.at(-1) ?? 0)) refuseDims(boxes, 'dims that end in 4 or 2')
    takePair(inputs, 'scale')
    if (inputs.has('pad')) takePair(inputs, 'pad')
    inputs.takeOptional('size', { datatypes: ['INT32', 'INT64'], rank: 1, last: [2] })
    return [{ name: 'boxes', datatype, dims }]
  },
  build: (_options, graph) => {
    const { datatype } = graph.port('boxes')
    const type = datatype === 'FP64' ? 'FP64' : 'FP32'
    const shape = graph.op('Shape', [graph.input('boxes')])
    const last = graph.op('Slice', [shape, graph.list(-1), graph.list(MAX_RANK)])
    const times = graph.op('Div', [last, graph.list(2)])
    // x and y, once or twice.
    const spread = (pair: string): string => {
      const both = graph.op('Expand', [graph.cast(pair, type), graph.list(2)])
      return graph.op('Tile', [both, times])
    }
    let boxes = graph.cast(graph.input('boxes'), type)
    if (graph.has('pad')) boxes = graph.op('Sub', [boxes, spread(graph.input('pad'))])
    boxes = graph.op('Div', [boxes, spread(graph.input('scale'))])
    if (graph.has('size')) {
      const sides = graph.op('Gather', [graph.input('size'), graph.list(1, 0)], { axis: 0 })
      boxes = graph.op('Max', [boxes, graph.scalar(type, 0)])
      boxes = graph.op('Min', [boxes, spread(sides)])
    }
    graph.output('boxes', graph.cast(boxes, datatype))
  },
  arithmetic: [
    {
      case: 'FP32, FP64',
      equals:
        '`(boxes - pad) / scale`, then `numpy.clip` to 0 and the size, as `ultralytics.utils.ops.scale_boxes`',
      tolerance: 'none',
    },
    { case: 'FP16', equals: 'the same in FP32, rounded to FP16', tolerance: 'none' },
  ],
})

function takePair(inputs: InputReader, name: string): void {
  const pair = inputs.take(name, { datatypes: FLOATS, rank: 1 })
  if (![-1, 1, 2].includes(pair.dims[0] ?? 0)) refuseDims(pair, '[2] or [1]')
}
