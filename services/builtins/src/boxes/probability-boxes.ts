import { z } from 'zod'
import { codeBuiltin } from '../builtin.ts'
import { refuseDims } from '../input-reader.ts'

/** Most pieces of rows of a map above the threshold, or up to it: a page of text has some 10,000. Each takes some hundred bytes. */
export const MAX_RUNS = 2 ** 20
/** Largest extent of the picture that a map is of. */
export const MAX_PICTURE_SIDE = 2 ** 24
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
    map: `FP32, [1, 1, H, W], [1, H, W] or [H, W]: probabilities from 0 to 1. More than ${MAX_RUNS} pieces of rows on one side of the threshold are an error`,
    size: `INT64, [2]: height and width of the picture in whose pixels the boxes are, 1 to ${MAX_PICTURE_SIDE}`,
  },
  outputs: {
    boxes: 'FP32, [N, 4, 2]: x and y of the corners, from the upper left one on clockwise',
    scores: 'FP32, [N]: mean of the probabilities in the box before it grows',
  },
  signature: (_options, inputs) => {
    const map = inputs.take('map', { datatypes: ['FP32'], rank: [2, 4] })
    if (map.dims.slice(0, -2).some((extent) => extent !== 1 && extent !== -1)) {
      refuseDims(map, 'one map')
    }
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
