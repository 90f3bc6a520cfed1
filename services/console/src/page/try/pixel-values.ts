import type { Datatype } from '@tutti/tensor'

/** Four bytes for a pixel, row by row: red, green, blue, alpha. */
export type Rgba = Uint8ClampedArray

/** A function that draws a picture in a wanted size, in pixels. */
export type DrawPixels = (width: number, height: number) => Rgba

/** Ranges of the floating-point numbers of a picture. */
export const SCALES = ['0 to 255', '0 to 1', '-1 to 1'] as const
export type Scale = (typeof SCALES)[number]

export function isScale(text: string): text is Scale {
  return SCALES.some((scale) => scale === text)
}

const FACTORS: Readonly<Record<Scale, readonly [factor: number, offset: number]>> = {
  '0 to 255': [1, 0],
  '0 to 1': [1 / 255, 0],
  '-1 to 1': [2 / 255, -1],
}

export interface PixelOptions {
  readonly channels: number
  /** True for the shape [channels, height, width], false for [height, width, channels]. */
  readonly isPlanar: boolean
  readonly datatype: Datatype
  readonly scale: Scale
}

/** Computes the elements of a picture's tensor. One channel is grey, by the weights of ITU-R 601 as in most libraries. */
export function pixelValues(rgba: Rgba, o: PixelOptions): Float32Array {
  const { channels, isPlanar, datatype, scale } = o
  const isFloat = /^(FP|BF)/.test(datatype)
  const [factor, offset] = isFloat ? FACTORS[scale] : FACTORS['0 to 255']
  const size = rgba.length / 4
  const values = new Float32Array(size * channels)
  for (let pixel = 0; pixel < size; pixel++) {
    for (let channel = 0; channel < channels; channel++) {
      const value = channels === 1 ? grey(rgba, pixel * 4) : (rgba[pixel * 4 + channel] ?? 0)
      values[isPlanar ? channel * size + pixel : pixel * channels + channel] =
        value * factor + offset
    }
  }
  return values
}

function grey(rgba: Rgba, at: number): number {
  const [red = 0, green = 0, blue = 0] = [rgba[at], rgba[at + 1], rgba[at + 2]]
  return Math.round(0.299 * red + 0.587 * green + 0.114 * blue)
}
