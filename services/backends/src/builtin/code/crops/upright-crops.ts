/** Pixels of numbers: by rows, and within a pixel by channels. */
export interface PixelMap {
  readonly width: number
  readonly height: number
  readonly channels: number
  readonly pixels: Uint8Array | Uint16Array | Float32Array
}

/** A box of whole pixels within a picture. */
export interface UprightBox {
  readonly left: number
  readonly top: number
  /** Pixels across and down, at least 1. */
  readonly across: number
  readonly along: number
}

/** For each pixel of a line of a crop: the two pixels that it is mixed of, and the weight of the second. */
interface Mix {
  readonly first: Int32Array
  readonly second: Int32Array
  readonly weight: Float32Array
}

/**
 * Limits a box to a picture; one without area becomes the nearest pixel.
 *
 * @param corners - x1, y1, x2, y2; fractions are cut off.
 */
export function toUprightBox(
  corners: readonly number[],
  { width, height }: Pick<PixelMap, 'width' | 'height'>,
): UprightBox {
  const [x1 = 0, y1 = 0, x2 = 0, y2 = 0] = corners.map(Math.trunc)
  const [left, top] = [within(x1, width - 1), within(y1, height - 1)]
  const [right, bottom] = [within(x2, width), within(y2, height)]
  return { left, top, across: Math.max(right - left, 1), along: Math.max(bottom - top, 1) }
}

function within(value: number, most: number): number {
  // NaN is below every number.
  return value > 0 ? Math.min(value, most) : 0
}

/**
 * Scales a box of a picture bilinearly, as cv2.resize does with INTER_LINEAR.
 *
 * @param line - memory for one row of the crop; it may be longer than that, and its rest stays as it is.
 * @param write - gets each row, from the first one on, in `line`.
 */
export function scaleBox(
  picture: PixelMap,
  box: UprightBox,
  o: {
    readonly width: number
    readonly height: number
    readonly line: Float32Array
    readonly write: (row: number) => void
  },
): void {
  const across = mixOf(box.left, box.across, o.width)
  const down = mixOf(box.top, box.along, o.height)
  const length = o.width * picture.channels
  const rows = new RowCache(picture, across, length)
  for (let y = 0; y < o.height; y += 1) {
    const upper = rows.get(down.first[y] ?? 0)
    const lower = rows.get(down.second[y] ?? 0)
    const weight = down.weight[y] ?? 0
    for (let i = 0; i < length; i += 1) {
      const value = upper[i] ?? 0
      o.line[i] = value + ((lower[i] ?? 0) - value) * weight
    }
    o.write(y)
  }
}

/** @param start - first pixel of the box. @param from - its pixels. @param to - pixels of the crop. */
function mixOf(start: number, from: number, to: number): Mix {
  const mix = {
    first: new Int32Array(to),
    second: new Int32Array(to),
    weight: new Float32Array(to),
  }
  const scale = from / to
  for (let i = 0; i < to; i += 1) {
    const place = Math.min(Math.max((i + 0.5) * scale - 0.5, 0), from - 1)
    const floor = Math.floor(place)
    mix.first[i] = start + floor
    mix.second[i] = start + Math.min(floor + 1, from - 1)
    mix.weight[i] = place - floor
  }
  return mix
}

/** Rows of a picture, scaled across. The last two are kept: an enlarged crop reads each of them several times. */
class RowCache {
  readonly #picture: PixelMap
  readonly #mix: Mix
  readonly #kept: [
    { readonly row: number; readonly values: Float32Array },
    { readonly row: number; readonly values: Float32Array },
  ]

  constructor(picture: PixelMap, mix: Mix, length: number) {
    this.#picture = picture
    this.#mix = mix
    const none = () => ({ row: -1, values: new Float32Array(length) })
    this.#kept = [none(), none()]
  }

  /** @returns a scaled row, which stays as it is until the second next other one is asked for. */
  get(row: number): Float32Array {
    const [older, newer] = this.#kept
    if (newer.row === row) return newer.values
    if (older.row !== row) mixRow(this.#picture, row, this.#mix, older.values)
    this.#kept[0] = newer
    this.#kept[1] = { row, values: older.values }
    return older.values
  }
}

function mixRow(
  { pixels, width, channels }: PixelMap,
  row: number,
  { first, second, weight }: Mix,
  values: Float32Array,
): void {
  const begin = row * width
  let at = 0
  for (let x = 0; x < first.length; x += 1) {
    const left = (begin + (first[x] ?? 0)) * channels
    const right = (begin + (second[x] ?? 0)) * channels
    const part = weight[x] ?? 0
    for (let c = 0; c < channels; c += 1) {
      const value = pixels[left + c] ?? 0
      values[at] = value + ((pixels[right + c] ?? 0) - value) * part
      at += 1
    }
  }
}
