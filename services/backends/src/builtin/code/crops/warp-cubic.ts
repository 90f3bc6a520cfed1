import { emptyPicture, type Picture } from '../pictures/picture.ts'
import type { Perspective } from './perspective.ts'

/** Steps in a pixel to which positions are rounded, as in OpenCV. */
const STEPS = 32
/** Pixels on each side, across and down, that a pixel is mixed of. */
const REACH = 4
/** Coefficient of OpenCV's bicubic interpolation. */
const A = -0.75
const WEIGHTS = cubicWeights()

/** The four weights for each step between two pixels. */
function cubicWeights(): Float64Array {
  const all = new Float64Array(STEPS * REACH)
  for (let i = 0; i < STEPS; i += 1) {
    const x = i / STEPS
    const outer = ((A * (x + 1) - 5 * A) * (x + 1) + 8 * A) * (x + 1) - 4 * A
    const left = ((A + 2) * x - (A + 3)) * x * x + 1
    const right = ((A + 2) * (1 - x) - (A + 3)) * (1 - x) * (1 - x) + 1
    all.set([outer, left, right, 1 - outer - left - right], i * REACH)
  }
  return all
}

/** The sixteen pixels that one is mixed of: their places in the data, and their weights. */
interface Mix {
  readonly places: Int32Array
  readonly weights: Float64Array
}

/**
 * Fills a picture from another one through a perspective, bicubic. Beyond its edges the other picture has the pixels of its edges.
 *
 * @param onto - where each pixel comes from.
 */
export function warpCubic(
  picture: Picture,
  onto: Perspective,
  { width, height }: { readonly width: number; readonly height: number },
): Picture {
  const out = emptyPicture(width, height, picture.channels)
  const { across, down, one } = onto
  const mix = { places: new Int32Array(REACH * REACH), weights: new Float64Array(REACH * REACH) }
  let at = 0
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const w = across.w * x + down.w * y + one.w
      const scale = w === 0 ? 0 : STEPS / w
      const u = (across.x * x + down.x * y + one.x) * scale
      const v = (across.y * x + down.y * y + one.y) * scale
      setMix(mix, picture, Math.round(u), Math.round(v))
      for (let c = 0; c < picture.channels; c += 1) out.data[at + c] = mixed(mix, picture.data, c)
      at += picture.channels
    }
  }
  return out
}

/** @param stepX - position in steps of a pixel. */
function setMix({ places, weights }: Mix, picture: Picture, stepX: number, stepY: number): void {
  const { width, height, channels } = picture
  const left = Math.floor(stepX / STEPS)
  const top = Math.floor(stepY / STEPS)
  const forX = (stepX - left * STEPS) * REACH
  const forY = (stepY - top * STEPS) * REACH
  for (let j = 0; j < REACH; j += 1) {
    const row = within(top - 1 + j, height) * width
    const weight = WEIGHTS[forY + j] ?? 0
    for (let i = 0; i < REACH; i += 1) {
      places[j * REACH + i] = (row + within(left - 1 + i, width)) * channels
      weights[j * REACH + i] = weight * (WEIGHTS[forX + i] ?? 0)
    }
  }
}

function mixed({ places, weights }: Mix, data: Uint8Array, channel: number): number {
  let sum = 0.5
  for (let i = 0; i < REACH * REACH; i += 1) {
    sum += (weights[i] ?? 0) * (data[(places[i] ?? 0) + channel] ?? 0)
  }
  return Math.floor(Math.min(Math.max(sum, 0), 255))
}

function within(value: number, extent: number): number {
  return Math.min(Math.max(value, 0), extent - 1)
}
