import { z } from 'zod'
import { codeBuiltin } from '../builtin.ts'
import { refuseDims, refuseOption } from '../input-reader.ts'

/** Most pixels of a side, as the formats have it. */
const MAX_SIDES = { jpeg: 65_535, png: 2 ** 24, webp: 16_383 } as const

/** Encodes pictures. */
export const imageEncode = codeBuiltin({
  name: 'imageEncode',
  summary: 'Encodes a picture as JPEG, PNG or WebP.',
  options: z.strictObject({
    format: z.enum(['jpeg', 'png', 'webp']).default('jpeg').describe('Format of the output'),
    quality: z
      .int()
      .min(1)
      .max(100)
      .optional()
      .describe(
        'Quality of JPEG (default 75) and of WebP (default 80); not for PNG, which loses nothing',
      ),
    color: z
      .enum(['RGB', 'BGR'])
      .default('RGB')
      .describe('Order of the channels of the input, where it has three or four'),
  }),
  inputs: {
    image: `UINT8, [H, W, C]: C is 1 for grey, 3 for colours, 4 for colours and alpha; sides up to ${MAX_SIDES.jpeg} for JPEG and ${MAX_SIDES.webp} for WebP`,
  },
  outputs: { data: 'BYTES, [1]: the bytes of a file' },
  signature: ({ format, quality }, inputs) => {
    const image = inputs.take('image', { datatypes: ['UINT8'], rank: 3 })
    const [height = -1, width = -1, channels = -1] = image.dims
    if (![-1, 1, 3, 4].includes(channels)) refuseDims(image, '1, 3 or 4 channels')
    const most = MAX_SIDES[format]
    const sides = [height, width].filter((side) => side !== -1)
    if (sides.some((side) => side < 1 || side > most)) {
      refuseDims(image, `1 to ${most} pixels on each side for ${format}`)
    }
    if (format === 'png' && quality !== undefined)
      refuseOption('quality', `${quality}`, 'none for png')
    return [{ name: 'data', datatype: 'BYTES', dims: [1] }]
  },
  arithmetic: [
    { case: 'PNG', equals: 'the same pixels when it is decoded', tolerance: 'none' },
    {
      case: 'JPEG',
      equals: "PIL's `save(quality=quality)`, decoded again",
      tolerance: 'none',
    },
    {
      case: 'WebP',
      equals: "PIL's `save(quality=quality)`, decoded again",
      tolerance: 'none',
    },
  ],
})
