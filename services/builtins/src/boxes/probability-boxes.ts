import { z } from 'zod'
import { codeBuiltin } from '../builtin.ts'

const share = z.number().min(0).max(1)

/** Makes boxes of a probability map. */
export const probabilityBoxes = codeBuiltin({
  name: 'probabilityBoxes',
  summary:
    'Makes boxes of the regions of a probability map, as text detection does (differentiable binarization, PaddleOCR), in reading order.',
  options: z.strictObject({
    threshold: share.default(0.3).describe('Probability above which a pixel is in a region'),
    boxThreshold: share
      .default(0.5)
      .describe('Least mean of the probabilities in the box of a region'),
    unclipRatio: z
      .number()
      .min(0.1)
      .max(10)
      .default(1.6)
      .describe(
        'How far a box grows on each side: this many times its area divided by its length around',
      ),
    dilate: z
      .boolean()
      .default(false)
      .describe('Whether regions first grow by a pixel to the right and below'),
    maxBoxes: z
      .int()
      .min(1)
      .max(10_000)
      .default(1000)
      .describe('Most regions that are looked at; those at the bottom of the map come first'),
  }),
  inputs: {
    map: 'FP32, [1, 1, H, W], [1, H, W] or [H, W]: probabilities from 0 to 1',
    size: 'INT64, [2]: height and width of the picture in whose pixels the boxes are',
  },
  outputs: {
    boxes: 'FP32, [N, 4, 2]: x and y of the corners, from the upper left one on clockwise',
    scores: 'FP32, [N]: mean of the probabilities in the box before it grows',
  },
  signature: (_options, inputs) => {
    inputs.take('map', { datatypes: ['FP32'], rank: [2, 4] })
    inputs.take('size', { datatypes: ['INT64'], rank: 1, last: [2] })
    return [
      { name: 'boxes', datatype: 'FP32', dims: [-1, 4, 2] },
      { name: 'scores', datatype: 'FP32', dims: [-1] },
    ]
  },
  arithmetic: [
    {
      case: 'boxes',
      equals:
        'DBPostProcess (score_mode fast), the filter and the order of rapidocr-onnxruntime 1.4.4, with OpenCV 4.14 and 5.0 and pyclipper 1.4',
      tolerance: 'none for 98 of 100 boxes',
      except:
        'corners within 0.0001 of a whole pixel, which either may cut to the pixel before, and regions around which two rectangles have the same area: such a box differs by some pixels',
    },
    { case: 'scores', equals: 'the same', tolerance: '1e-6, but for such boxes' },
  ],
})
