import { z } from 'zod'
import { MAX_RANK } from '../axes.ts'
import { onnxBuiltin } from '../builtin.ts'
import { FLOATS, onFloats } from '../datatypes.ts'
import { boxFormat, convertBoxFormat } from './box-formats.ts'

/** Writes boxes in another way. */
export const convertBoxes = onnxBuiltin({
  name: 'convertBoxes',
  summary:
    'Writes boxes in another way: by corners, by a corner and sides, or by the middle and sides.',
  options: z.strictObject({
    from: boxFormat.describe(
      'Numbers of a box of the input: corners, corner and sides, or middle and sides',
    ),
    to: boxFormat.describe('Numbers of a box of the output'),
  }),
  inputs: { boxes: 'FP16, FP32 or FP64, [..., 4]' },
  outputs: { boxes: 'as `boxes`' },
  signature: (_options, inputs) => {
    const demands = { datatypes: FLOATS, rank: [1, MAX_RANK], last: [4] } as const
    const { datatype, dims } = inputs.take('boxes', demands)
    return [{ name: 'boxes', datatype, dims }]
  },
  build: ({ from, to }, graph) => {
    const { datatype } = graph.port('boxes')
    const converted = onFloats(graph, graph.input('boxes'), datatype, (boxes, type) =>
      convertBoxFormat(graph, boxes, { from, to, half: graph.scalar(type, 0.5) }),
    )
    graph.output('boxes', converted)
  },
  arithmetic: [
    {
      case: 'FP32, FP64',
      equals: '`torchvision.ops.box_convert`: `c - wh * 0.5`, `low + wh` and so on',
      tolerance: '1e-6 relative',
    },
    { case: 'FP16', equals: 'the same in FP32, rounded to FP16', tolerance: '1e-3 relative' },
  ],
})
