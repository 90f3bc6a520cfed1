import type { TensorValue } from '@tutti/tensor'

/** Pixels of bytes: by rows, and within a pixel by channels. */
export interface Picture {
  readonly width: number
  readonly height: number
  readonly channels: number
  readonly data: Uint8Array
}

/** Views a tensor of height, width and channels. */
export function pictureOf({ shape, data }: TensorValue): Picture {
  const [height = 0, width = 0, channels = 0] = shape
  return { width, height, channels, data }
}

export function emptyPicture(width: number, height: number, channels: number): Picture {
  return { width, height, channels, data: new Uint8Array(width * height * channels) }
}

/** Turns a picture by 90 degrees against the clock, as numpy.rot90 does. */
export function turnLeft(picture: Picture): Picture {
  const { width, height, channels, data } = picture
  const out = emptyPicture(height, width, channels)
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const from = (y * width + x) * channels
      const to = ((width - 1 - x) * height + y) * channels
      for (let c = 0; c < channels; c += 1) out.data[to + c] = data[from + c] ?? 0
    }
  }
  return out
}

/** Turns a picture by 180 degrees. */
export function turnOver(picture: Picture): Picture {
  const { width, height, channels, data } = picture
  const out = emptyPicture(width, height, channels)
  const last = (width * height - 1) * channels
  for (let at = 0; at <= last; at += channels) {
    for (let c = 0; c < channels; c += 1) out.data[last - at + c] = data[at + c] ?? 0
  }
  return out
}
