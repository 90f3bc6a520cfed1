import { z } from 'zod'
import { checkCount, commonExtent } from '../axes.ts'
import { codeBuiltin } from '../builtin.ts'
import { MAX_SIDE } from '../image/image-dims.ts'
import { refuseOption } from '../input-reader.ts'
import { checkConstant } from '../operands.ts'

/** Most boxes of a request, each of which takes some memory beside its pixels. */
const MAX_BOXES = 2 ** 18
const side = z.int().min(1).max(MAX_SIDE)

/** Cuts rotated boxes out of a picture. */
export const cropRotated = codeBuiltin({
  name: 'cropRotated',
  summary:
    'Cuts quadrilaterals out of a picture, straightens them, and gives them one height and one width, as text recognition does (PaddleOCR).',
  options: z.strictObject({
    height: side.describe('Height of the crops, in pixels'),
    minWidth: side.describe('Least width of the crops, in pixels'),
    maxWidth: side
      .default(4096)
      .describe('Most width of the crops, in pixels. Wider ones are squeezed'),
    turnFrom: z
      .number()
      .min(1)
      .max(1000)
      .optional()
      .describe(
        'Boxes that are at least as many times as high as wide are turned by 90 degrees against the clock. Default: none',
      ),
    pad: z
      .number()
      .min(0)
      .max(255)
      .default(0)
      .describe('Value right of crops that are narrower than the widest; a whole number for UINT8'),
    datatype: z.enum(['UINT8', 'FP32']).default('UINT8').describe('Datatype of the crops'),
    maxPixels: z
      .int()
      .min(1)
      .max(2 ** 28)
      .default(2 ** 24)
      .describe(
        'Most pixels of all boxes together, and of all crops, whose bytes are at most 1 GiB',
      ),
  }),
  inputs: {
    image: 'UINT8, [H, W, C]',
    boxes: `FP32, [N, 4, 2], N up to ${MAX_BOXES}: x and y of the corners, from the upper left one on clockwise`,
    turned: 'BOOL, [N], optional: which crops are turned by 180 degrees',
  },
  outputs: {
    crops: '`datatype`, [N, height, W, C]',
    widths: 'INT64, [N]: width of each crop without its padding',
  },
  signature: ({ height, minWidth, maxWidth, pad, datatype }, inputs) => {
    if (minWidth > maxWidth)
      refuseOption('minWidth', `${minWidth}`, `at most maxWidth, ${maxWidth}`)
    checkConstant('pad', pad, datatype)
    const { dims } = inputs.take('image', { datatypes: ['UINT8'], rank: 3 })
    const boxes = inputs.take('boxes', { datatypes: ['FP32'], rank: 3, last: [4, 2] })
    checkCount(boxes, MAX_BOXES)
    const turned = inputs.takeOptional('turned', { datatypes: ['BOOL'], rank: 1 })
    const count = commonExtent([boxes, ...(turned ? [turned] : [])], 0)
    return [
      { name: 'crops', datatype, dims: [count, height, -1, dims[2] ?? -1] },
      { name: 'widths', datatype: 'INT64', dims: [count] },
    ]
  },
  arithmetic: [
    {
      case: 'all',
      equals:
        "get_rotate_crop_image of PaddleOCR (OpenCV 4.14's warpPerspective with INTER_CUBIC and BORDER_REPLICATE, and numpy.rot90), then cv2.resize with INTER_LINEAR",
      tolerance: '2 of 255, but for 1 value in 200 of noise',
      except:
        'OpenCV 5, whose warpPerspective does not round positions to 1/32 of a pixel, which makes up to 8 of 255 in noise',
    },
  ],
})
