import type { OptionsOf } from '@tutti/builtins'
import { DATATYPES, NUMBER_READERS, type TensorValue } from '@tutti/tensor'
import { checkOutputBytes } from '../../output-bound.ts'
import { inputOf, misfit, outputOf } from '../code-inputs.ts'
import type { OpenedCode } from '../code-step.ts'
import { pixelsOf, pixelWriter } from './pixels.ts'
import { type PixelMap, scaleBox, toUprightBox, type UprightBox } from './upright-crops.ts'

type Options = OptionsOf<'cropBoxes'>

/** Bytes of the width of a crop, the other output. */
const WIDTH_BYTES = DATATYPES.INT64.itemSize

/** Opens `cropBoxes`. */
export function openCropBoxes(options: Options): OpenedCode {
  return {
    run: (inputs) => {
      const image = inputOf(inputs, 'image')
      const [height = 0, width = 0, channels = 0] = image.shape
      const picture = { width, height, channels, pixels: pixelsOf(image) }
      const boxes = boxesOf(inputOf(inputs, 'boxes'), picture)
      const widths = boxes.map((box) => widthOf(box, options))
      const shape = [boxes.length, options.height, fullWidth(widths, options), channels]
      const data = cropAll(picture, { boxes, widths, shape, datatype: image.datatype, options })
      return [
        { name: 'crops', datatype: image.datatype, shape, data },
        outputOf('widths', [boxes.length], Int32Array.from(widths)),
      ]
    },
  }
}

function boxesOf({ datatype, shape, data }: TensorValue, picture: PixelMap): UprightBox[] {
  const [count = 0] = shape
  if (count > 0 && picture.width * picture.height === 0) throw misfit('image', 'no pixels', 'some')
  const read = NUMBER_READERS[datatype]
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  return Array.from({ length: count }, (_, i) => {
    const corners = [0, 1, 2, 3].map((k) => Number(read?.(view, 4 * i + k) ?? 0))
    return toUprightBox(corners, picture)
  })
}

/** The width of a crop without what is at its right. */
function widthOf({ across, along }: UprightBox, { fit, width, height }: Options): number {
  return fit === 'stretch' ? width : Math.min(Math.ceil((across * height) / along), width)
}

function fullWidth(widths: readonly number[], { padTo, width, minWidth = 1 }: Options): number {
  if (padTo !== 'widest') return width
  return widths.reduce((most, own) => Math.max(most, own), minWidth)
}

interface Crops {
  readonly boxes: readonly UprightBox[]
  readonly widths: readonly number[]
  readonly shape: readonly number[]
  readonly datatype: TensorValue['datatype']
  readonly options: Options
}

function cropAll(
  picture: PixelMap,
  { boxes, widths, shape, datatype, options }: Crops,
): Uint8Array {
  const [, height = 0, width = 0, channels = 0] = shape
  const row = width * channels
  const count = boxes.length * height * row
  const bytes = count * (DATATYPES[datatype].itemSize ?? 0) + boxes.length * WIDTH_BYTES
  checkOutputBytes({ builtin: 'cropBoxes', bytes })
  const writer = pixelWriter(datatype, count)
  const line = new Float32Array(row)
  boxes.forEach((box, i) => {
    const own = widths[i] ?? 0
    line.fill(options.fill ?? 0, own * channels)
    const write = (y: number): void => writer.write(line, (i * height + y) * row)
    scaleBox(picture, box, { width: own, height, line, write })
  })
  return writer.data
}
