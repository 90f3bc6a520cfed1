import { z } from 'zod'
import { codeBuiltin } from '../builtin.ts'

const MAX_OUTPUTS = 2 ** 16

/** Keeps the best of rotated boxes that overlap. */
export const rotatedNms = codeBuiltin({
  name: 'rotatedNms',
  summary:
    'Keeps the rotated box of the highest score where several overlap, such as lines of text.',
  options: z.strictObject({
    scoreThreshold: z.number().default(0.25).describe('Boxes up to this score are left out'),
    iouThreshold: z
      .number()
      .min(0)
      .max(1)
      .default(0.45)
      .describe(
        'Of two boxes whose intersection over union is greater, or of which one lies within the other, the one of the lower score is left out',
      ),
    maxOutputs: z
      .int()
      .min(1)
      .max(MAX_OUTPUTS)
      .default(300)
      .describe('Most boxes of the output: those of the highest scores'),
  }),
  inputs: {
    boxes:
      'FP32, [N, 5]: middle x and y, width, height, and angle in radians, clockwise on the screen',
    scores: 'FP32, [N]',
  },
  outputs: {
    boxes:
      'FP32, [M, 4, 2]: x and y of the corners, from the upper left one on clockwise, by falling score, as `cropRotated` takes them',
    scores: 'FP32, [M]',
    indices: 'INT64, [M]: rows of the input',
  },
  signature: (_options, inputs) => {
    inputs.take('boxes', { datatypes: ['FP32'], rank: 2, last: [5] })
    inputs.take('scores', { datatypes: ['FP32'], rank: 1 })
    return [
      { name: 'boxes', datatype: 'FP32', dims: [-1, 4, 2] },
      { name: 'scores', datatype: 'FP32', dims: [-1] },
      { name: 'indices', datatype: 'INT64', dims: [-1] },
    ]
  },
  arithmetic: [
    {
      case: 'indices',
      equals:
        '`cv2.dnn.NMSBoxesRotated`; of equal scores the first row comes first. Boxes with a number that is none, or without area, are left out',
      tolerance: 'none, but for an intersection over union that is the threshold within 1e-4',
    },
    { case: 'boxes', equals: '`cv2.boxPoints`, from another corner on', tolerance: '1e-3 pixels' },
  ],
})
