import { z } from 'zod'
import { codeBuiltin } from '../builtin.ts'

/** Most passes over the pixels of a JPEG, of which encoders make about ten: each takes time however few bytes it has. */
export const MAX_SCANS = 100

/** Decodes pictures. */
export const imageDecode = codeBuiltin({
  name: 'imageDecode',
  summary: 'Decodes a JPEG, PNG or WebP picture, and refuses other formats.',
  options: z.strictObject({
    color: z
      .enum(['RGB', 'BGR', 'GRAY'])
      .default('RGB')
      .describe('Channels of the output and their order'),
    applyOrientation: z
      .boolean()
      .default(true)
      .describe('Whether the picture is turned and mirrored as its EXIF data say'),
    maxPixels: z
      .int()
      .min(1)
      .max(2 ** 28)
      .default(2 ** 25)
      .describe('Most pixels of a picture. Its header is checked before it is decoded'),
  }),
  inputs: {
    data: `BYTES [1] or UINT8 [N]: the bytes of a file; of a JPEG up to ${MAX_SCANS} scans`,
  },
  outputs: {
    image: 'UINT8, [H, W, 3], or [H, W, 1] for GRAY',
    size: 'INT64, [2]: height and width of `image`',
  },
  signature: ({ color }, inputs) => {
    inputs.take('data', { datatypes: ['BYTES', 'UINT8'], rank: 1 })
    return [
      { name: 'image', datatype: 'UINT8', dims: [-1, -1, color === 'GRAY' ? 1 : 3] },
      { name: 'size', datatype: 'INT64', dims: [2] },
    ]
  },
  arithmetic: [
    {
      case: '8 bits a channel: colours, grey, a palette, one bit; colour profiles do not count',
      equals: "PIL's `ImageOps.exif_transpose(Image.open(data)).convert('RGB')`",
      tolerance: 'none',
    },
    {
      case: '`color: GRAY`',
      equals: "PIL's `convert('L')` of the RGB picture",
      tolerance: 'none',
    },
    {
      case: 'alpha',
      equals: "PIL's `convert('RGB')`, which leaves alpha out",
      tolerance: 'none',
    },
    {
      case: '16 bits a channel (PNG)',
      equals: 'the upper 8 bits, as PIL for colours',
      tolerance: 'none',
      except:
        "PIL's `convert('RGB')` of 16-bit grey, which gives 255 for all but the darkest 256 values",
    },
    {
      case: 'CMYK (JPEG)',
      equals: "PIL's `convert('RGB')`, which multiplies inks and takes no profile",
      tolerance: '1 of 255 where there is black ink, else none',
    },
    {
      case: 'moving pictures (WebP, APNG)',
      equals: 'the first picture',
      tolerance: 'none',
    },
    {
      case: 'cut or damaged bytes',
      equals: 'an error, where PIL and OpenCV may give the pixels that there are',
      tolerance: 'none',
    },
  ],
})
