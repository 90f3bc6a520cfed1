import type { Shape } from '@tutti/tensor'

const CHANNELS: ReadonlySet<number> = new Set([1, 3, 4])

/** Layout of a picture's values in a tensor. */
export interface PictureLayout {
  readonly height: number
  readonly width: number
  readonly channels: number
  /** True for [channels, height, width], false for [height, width, channels]. */
  readonly isPlanar: boolean
}

/**
 * Finds the picture layout of a shape: [H,W,C] or [C,H,W] with 1, 3 or 4 channels, or [H,W], with or without a batch of one
 * before it.
 *
 * @returns undefined if the shape is no picture, or fits both [H,W,C] and [C,H,W].
 */
export function pictureLayout(shape: Shape): PictureLayout | undefined {
  const [first = 0, second = 0, third, fourth] = shape
  if (fourth !== undefined) {
    return shape.length === 4 && (first === 1 || first === -1)
      ? pictureLayout(shape.slice(1))
      : undefined
  }
  if (third === undefined) {
    return shape.length === 2
      ? { height: first, width: second, channels: 1, isPlanar: false }
      : undefined
  }
  if (CHANNELS.has(first) === CHANNELS.has(third)) return undefined
  return CHANNELS.has(third)
    ? { height: first, width: second, channels: third, isPlanar: false }
    : { height: second, width: third, channels: first, isPlanar: true }
}

/** Checks whether a tensor of a shape with open extents (-1) may be a picture. */
export function mayBePicture(shape: Shape): boolean {
  if (shape.length > 4) return false
  const open = shape.indexOf(-1)
  if (open === -1) return pictureLayout(shape) !== undefined
  // 1 may be a batch or channels, 2 is neither.
  return [1, 2].some((extent) => mayBePicture(shape.with(open, extent)))
}
