import { z } from 'zod'
import { codeBuiltin } from '../builtin.ts'
import { MAX_SIDE, PIXELS } from '../image/image-dims.ts'
import { refuseDims, refuseOption } from '../input-reader.ts'
import { checkConstant } from '../operands.ts'

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
export const cropBoxes = codeBuiltin({
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
    if (count > o.maxBoxes) refuseDims(boxes, `at most ${o.maxBoxes} boxes (maxBoxes)`)
    checkConstant('fill', o.fill, datatype)
    const width = o.padTo === 'widest' ? -1 : o.width
    return [
      { name: 'crops', datatype, dims: [count, o.height, width, dims[2] ?? -1] },
      { name: 'widths', datatype: 'INT64', dims: [count] },
    ]
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
