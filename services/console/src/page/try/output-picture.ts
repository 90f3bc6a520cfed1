import { type PictureLayout, pictureLayout } from '@tutti/formats'
import { type TensorValue } from '@tutti/tensor'
import type { Rgba } from './pixel-values.ts'
import { numbersOf } from './tensor-elements.ts'

/** A tensor as a picture. */
export interface OutputPicture {
  readonly width: number
  readonly height: number
  readonly rgba: Rgba
  /** The values that are black and white. */
  readonly range: readonly [least: number, most: number]
  /** Pictures in the batch; the first is shown. */
  readonly batch: number
}

/** Fewer pixels on a side are more likely numbers. */
const LEAST_SIDE = 8
const MOST_PIXELS = 16_777_216

/** Makes the first picture of a tensor with 1, 3 or 4 channels; undefined if the tensor is no picture. */
export function outputPicture(tensor: TensorValue): OutputPicture | undefined {
  const { datatype, shape } = tensor
  if (datatype === 'BYTES' || shape.length < 3 || shape.length > 4) return undefined
  const layout = pictureLayout(shape.slice(-3))
  if (layout === undefined) return undefined
  const { width, height, channels } = layout
  const { at, count } = numbersOf(tensor)
  // A batch may be empty.
  const length = width * height * channels
  if (Math.min(width, height) < LEAST_SIDE || width * height > MOST_PIXELS || count < length) {
    return undefined
  }
  const values = Float64Array.from({ length }, (_, i) => Number(at(i)))
  const range = rangeOf(values, datatype)
  const batch = shape.length === 4 ? (shape[0] ?? 1) : 1
  return { width, height, rgba: toRgba(values, layout, range), range, batch }
}

function toRgba(
  values: Float64Array,
  { width, height, channels, isPlanar }: PictureLayout,
  [least, most]: OutputPicture['range'],
): Rgba {
  const size = width * height
  const factor = 255 / (most - least || 1)
  const rgba = new Uint8ClampedArray(size * 4).fill(255)
  for (let pixel = 0; pixel < size; pixel++) {
    for (let colour = 0; colour < Math.max(3, channels); colour++) {
      const channel = channels === 1 ? 0 : colour
      const from = isPlanar ? channel * size + pixel : pixel * channels + channel
      rgba[pixel * 4 + colour] = ((values[from] ?? 0) - least) * factor
    }
  }
  return rgba
}

/** Finds the range of values: 0 to 255 or 0 to 1 if all values are within, else from the least to the greatest. */
function rangeOf(values: Float64Array, datatype: string): readonly [number, number] {
  if (datatype === 'UINT8') return [0, 255]
  let [least, most] = [Infinity, -Infinity]
  for (const value of values) {
    if (!Number.isFinite(value)) continue
    if (value < least) least = value
    if (value > most) most = value
  }
  if (least >= 0 && most <= 1) return [0, 1]
  if (least >= 0 && most <= 255) return [0, 255]
  return least <= most ? [least, most] : [0, 1]
}
