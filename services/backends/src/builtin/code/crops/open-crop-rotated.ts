import type { OptionsOf } from '@tutti/builtins'
import { floatsOf, inputOf, misfit } from '../code-inputs.ts'
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
      if (turned !== undefined && turned.data.byteLength !== count) {
        throw misfit('turned', `${turned.data.byteLength} values`, `${count}, one for each box`)
      }
      const picture = pictureOf(image)
      if (picture.data.byteLength === 0 && count > 0) throw misfit('image', 'no pixels', 'some')
      const crops = cropQuadrilaterals(picture, floatsOf(boxes), turned?.data, options)
      const widths = BigInt64Array.from(crops.pictures, ({ width }) => BigInt(width))
      const shape = [count, options.height, crops.width, picture.channels]
      const data = joinCrops(crops, { ...options, channels: picture.channels })
      return [
        { name: 'crops', datatype: options.datatype, shape, data },
        { name: 'widths', datatype: 'INT64', shape: [count], data: new Uint8Array(widths.buffer) },
      ]
    },
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
