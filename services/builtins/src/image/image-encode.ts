import { z } from 'zod'
import { codeBuiltin } from '../builtin.ts'
import { refuseOption } from '../input-reader.ts'

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
  inputs: { image: 'UINT8, [H, W, C]: C is 1 for grey, 3 for colours, 4 for colours and alpha' },
  outputs: { data: 'BYTES, [1]: the bytes of a file' },
  signature: ({ format, quality }, inputs) => {
    inputs.take('image', { datatypes: ['UINT8'], rank: 3 })
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
