import { z } from 'zod'
import { checkCount, commonExtent } from '../axes.ts'
import { codeBuiltin } from '../builtin.ts'
import { suppressionOptions } from './suppression-options.ts'

/** Most boxes of a request, each of which takes some hundred bytes. */
const MAX_BOXES = 2 ** 20

/** Keeps the best of rotated boxes that overlap. */
export const rotatedNms = codeBuiltin({
  name: 'rotatedNms',
  summary:
    'Keeps the rotated box of the highest score where several overlap, such as lines of text.',
  options: z.strictObject({
    ...suppressionOptions,
    iouThreshold: suppressionOptions.iouThreshold.describe(
      'Of two boxes whose intersection over union is greater, or of which one lies within the other, the one of the lower score is left out',
    ),
  }),
  inputs: {
    boxes: `FP32, [N, 5], N up to ${MAX_BOXES}: middle x and y, width, height, and angle in radians, clockwise on the screen`,
    scores: 'FP32, [N]',
  },
  outputs: {
    boxes:
      'FP32, [M, 4, 2]: x and y of the corners, from the upper left one on clockwise, by falling score, as `cropRotated` takes them',
    scores: 'FP32, [M]',
    indices: 'INT64, [M]: rows of the input',
  },
  signature: (_options, inputs) => {
    const boxes = inputs.take('boxes', { datatypes: ['FP32'], rank: 2, last: [5] })
    checkCount(boxes, MAX_BOXES)
    commonExtent([boxes, inputs.take('scores', { datatypes: ['FP32'], rank: 1 })], 0)
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
