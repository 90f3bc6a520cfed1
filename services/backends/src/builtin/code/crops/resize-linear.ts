import { emptyPicture, type Picture } from '../pictures/picture.ts'

/** One of a weight, in OpenCV's fixed point. */
const ONE = 2048

/** For each pixel of a line: the first of the two that it is mixed of, and the weight of the second. */
interface Mix {
  readonly first: Int32Array
  readonly second: Int32Array
  readonly weight: Int32Array
}

/** Resizes a picture as cv2.resize does with INTER_LINEAR: between the centres of pixels, without averaging those that it skips. */
export function resizeLinear(
  picture: Picture,
  { width, height }: { readonly width: number; readonly height: number },
): Picture {
  const { channels } = picture
  const out = emptyPicture(width, height, channels)
  const across = mixOf(picture.width, width)
  const down = mixOf(picture.height, height)
  const rows = [new Int32Array(width * channels), new Int32Array(width * channels)] as const
  for (let y = 0; y < height; y += 1) {
    mixRow(picture, down.first[y] ?? 0, across, rows[0])
    mixRow(picture, down.second[y] ?? 0, across, rows[1])
    const below = down.weight[y] ?? 0
    const above = ONE - below
    const begin = y * width * channels
    for (let i = 0; i < width * channels; i += 1) {
      const upper = (above * ((rows[0][i] ?? 0) >> 4)) >> 16
      const lower = (below * ((rows[1][i] ?? 0) >> 4)) >> 16
      out.data[begin + i] = (upper + lower + 2) >> 2
    }
  }
  return out
}

function mixOf(from: number, to: number): Mix {
  const mix = { first: new Int32Array(to), second: new Int32Array(to), weight: new Int32Array(to) }
  const scale = from / to
  for (let i = 0; i < to; i += 1) {
    const position = Math.fround((i + 0.5) * scale - 0.5)
    const floor = Math.floor(position)
    const isInside = floor >= 0 && floor < from - 1
    const first = Math.min(Math.max(floor, 0), from - 1)
    mix.first[i] = first
    mix.second[i] = Math.min(first + 1, from - 1)
    mix.weight[i] = isInside ? Math.round(Math.fround(position - floor) * ONE) : 0
  }
  return mix
}

function mixRow(
  picture: Picture,
  y: number,
  { first, second, weight }: Mix,
  row: Int32Array,
): void {
  const { width, channels, data } = picture
  const begin = y * width * channels
  for (let x = 0; x < first.length; x += 1) {
    const left = begin + (first[x] ?? 0) * channels
    const right = begin + (second[x] ?? 0) * channels
    const part = weight[x] ?? 0
    for (let c = 0; c < channels; c += 1) {
      row[x * channels + c] = (data[left + c] ?? 0) * (ONE - part) + (data[right + c] ?? 0) * part
    }
  }
}
