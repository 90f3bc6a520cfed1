import type { Points } from '../boxes/polygon.ts'
import { misfit } from '../code-inputs.ts'
import { type Picture, turnLeft, turnOver } from '../pictures/picture.ts'
import { perspectiveOnto } from './perspective.ts'
import { resizeLinear } from './resize-linear.ts'
import { warpCubic } from './warp-cubic.ts'

export interface CropOptions {
  readonly height: number
  readonly minWidth: number
  readonly maxWidth: number
  /** Crops as many times as high as wide are turned by 90 degrees; undefined for none. */
  readonly turnFrom?: number | undefined
  readonly maxPixels: number
  /** Called before any pixel is made, with the pixels of all boxes and of all crops. @throws ServeError if their bytes are too many. */
  checkSize(pixels: { readonly boxes: number; readonly crops: number }): void
}

/** The crops of one picture: of one height and width, those that are narrower at its left. */
export interface Crops {
  readonly width: number
  /** For each crop its pixels, of its own width. */
  readonly pictures: readonly Picture[]
}

/**
 * Cuts quadrilaterals out of a picture, as PaddleOCR does: each is warped to an upright rectangle of its own size (bicubic), turned if it is
 * tall, and then resized to the height (bilinear).
 *
 * @param boxes - eight numbers each: the corners from the upper left one on, clockwise.
 * @param turned - for each box, whether its crop is turned by 180 degrees.
 * @throws ServeError INVALID_REQUEST for a box that is no quadrilateral, or more pixels than are allowed.
 */
export function cropQuadrilaterals(
  picture: Picture,
  boxes: Float32Array,
  turned: Uint8Array | undefined,
  options: CropOptions,
): Crops {
  const { height, minWidth, maxWidth, maxPixels } = options
  const count = boxes.length / 8
  const sizes = Array.from({ length: count }, (_, i) => sizeOf(cornersOf(boxes, i), i))
  const pixels = sizes.reduce((sum, size) => sum + size.width * size.height, 0)
  if (!(pixels <= maxPixels))
    throw misfit('boxes', `${pixels} pixels in all`, `at most ${maxPixels}`)
  const ratios = sizes.map((size) => ratioOf(size, options))
  const widest = Math.floor(height * ratios.reduce((most, ratio) => Math.max(most, ratio), 0))
  const width = Math.min(Math.max(minWidth, widest), maxWidth)
  if (count * width * height > maxPixels) {
    const got = `${count} boxes, which makes crops of ${count * width * height} pixels`
    throw misfit('boxes', got, `at most ${maxPixels}`)
  }
  options.checkSize({ boxes: pixels, crops: count * width * height })
  const pictures = sizes.map((size, i) => {
    const crop = cutOut(picture, cornersOf(boxes, i), { size, index: i, options })
    const upright = turned?.[i] === 1 ? turnOver(crop) : crop
    const own = Math.min(Math.ceil(height * (ratios[i] ?? 0)), width)
    return resizeLinear(upright, { width: Math.max(own, 1), height })
  })
  return { width, pictures }
}

interface Size {
  readonly width: number
  readonly height: number
}

function cornersOf(boxes: Float32Array, i: number): Points {
  return [...boxes.subarray(8 * i, 8 * i + 8)]
}

function length(x: number, y: number): number {
  return Math.fround(Math.hypot(x, y))
}

/** The longer of two opposite sides, cut to a whole number. */
function sizeOf(corners: Points, index: number): Size {
  const [ax = 0, ay = 0, bx = 0, by = 0, cx = 0, cy = 0, dx = 0, dy = 0] = corners
  const width = Math.max(length(ax - bx, ay - by), length(cx - dx, cy - dy))
  const height = Math.max(length(ax - dx, ay - dy), length(bx - cx, by - cy))
  if (width >= 1 && height >= 1) return { width: Math.trunc(width), height: Math.trunc(height) }
  throw misfit('boxes', `box ${index} of ${width} x ${height} pixels`, 'at least 1 x 1')
}

/** Width for each pixel of height, as the crop is in the end. */
function ratioOf({ width, height }: Size, { turnFrom }: CropOptions): number {
  return isTall({ width, height }, turnFrom) ? height / width : width / height
}

function isTall({ width, height }: Size, turnFrom: number | undefined): boolean {
  return turnFrom !== undefined && height / width >= turnFrom
}

function cutOut(
  picture: Picture,
  corners: Points,
  o: { readonly size: Size; readonly index: number; readonly options: CropOptions },
): Picture {
  const onto = perspectiveOnto(corners, o.size)
  if (onto === undefined) {
    throw misfit('boxes', `box ${o.index} with corners ${corners.join(', ')}`, 'a quadrilateral')
  }
  const crop = warpCubic(picture, onto, o.size)
  return isTall(o.size, o.options.turnFrom) ? turnLeft(crop) : crop
}
