import { MAX_OUTPUT_BYTES, type OptionsOf } from '@tutti/builtins'
import { DATATYPES } from '@tutti/tensor'
import { checkOutputBytes } from '../../output-bound.ts'
import { floatsOf, inputOf, misfit, outputOf } from '../code-inputs.ts'
import type { OpenedCode } from '../code-step.ts'
import { pictureOf } from '../pictures/picture.ts'
import { type Crops, cropQuadrilaterals } from './crop-quadrilaterals.ts'

/** Opens `cropRotated`. */
export function openCropRotated(options: OptionsOf<'cropRotated'>): OpenedCode {
  return {
    run: (inputs) => {
      const image = inputOf(inputs, 'image')
      const boxes = inputOf(inputs, 'boxes')
      const turned = inputs.get('turned')
      const [count = 0] = boxes.shape
      const picture = pictureOf(image)
      if (picture.data.byteLength === 0 && count > 0) throw misfit('image', 'no pixels', 'some')
      const crops = cropQuadrilaterals(picture, floatsOf(boxes), turned?.data, {
        ...options,
        checkSize: (pixels) => checkSize(pixels, { count, channels: picture.channels, options }),
      })
      const widths = Int32Array.from(crops.pictures, ({ width }) => width)
      const shape = [count, options.height, crops.width, picture.channels]
      const data = joinCrops(crops, { ...options, channels: picture.channels })
      return [
        { name: 'crops', datatype: options.datatype, shape, data },
        outputOf('widths', [count], widths),
      ]
    },
  }
}

/** @throws ServeError INVALID_REQUEST for boxes, or MESSAGE_TOO_LARGE for crops, that take more memory than outputs may have. */
function checkSize(
  pixels: { readonly boxes: number; readonly crops: number },
  o: {
    readonly count: number
    readonly channels: number
    readonly options: OptionsOf<'cropRotated'>
  },
): void {
  const { itemSize } = DATATYPES[o.options.datatype]
  const widths = o.count * DATATYPES.INT64.itemSize
  const bytes = pixels.crops * o.channels * itemSize + widths
  checkOutputBytes({ builtin: 'cropRotated', bytes })
  const cut = pixels.boxes * o.channels
  if (cut > MAX_OUTPUT_BYTES) {
    throw misfit('boxes', `${cut} bytes of pixels in all`, `at most ${MAX_OUTPUT_BYTES}`)
  }
}

/** Puts crops one behind the other, each row padded at its right. */
function joinCrops(
  { width, pictures }: Crops,
  { height, channels, pad, datatype }: OptionsOf<'cropRotated'> & { readonly channels: number },
): Uint8Array {
  const row = width * channels
  const length = pictures.length * height * row
  const all = datatype === 'UINT8' ? new Uint8Array(length) : new Float32Array(length)
  if (pad !== 0) all.fill(pad)
  pictures.forEach((picture, i) => {
    const own = picture.width * channels
    for (let y = 0; y < height; y += 1) {
      all.set(picture.data.subarray(y * own, (y + 1) * own), (i * height + y) * row)
    }
  })
  return new Uint8Array(all.buffer)
}
