import { type Points, pointAt } from '../boxes/polygon.ts'

/** A point of a plane in homogeneous coordinates: it is at x / w, y / w. */
interface Homogeneous {
  readonly x: number
  readonly y: number
  readonly w: number
}

/** A map of one plane to another: x steps across, y steps down, and the origin. */
export interface Perspective {
  readonly across: Homogeneous
  readonly down: Homogeneous
  readonly one: Homogeneous
}

/**
 * Computes the map of an upright rectangle at the origin onto a quadrilateral.
 *
 * @param corners - of the quadrilateral: where the rectangle's upper left, upper right, lower right and lower left corners go.
 * @returns undefined if three corners lie on one line.
 * @see Heckbert, Fundamentals of Texture Mapping and Image Warping, 2.2.3
 */
export function perspectiveOnto(
  corners: Points,
  { width, height }: { readonly width: number; readonly height: number },
): Perspective | undefined {
  const [[x0, y0], [x1, y1]] = [pointAt(corners, 0), pointAt(corners, 1)]
  const [[x2, y2], [x3, y3]] = [pointAt(corners, 2), pointAt(corners, 3)]
  const [dx1, dy1, dx2, dy2] = [x1 - x2, y1 - y2, x3 - x2, y3 - y2]
  const [sx, sy] = [x0 - x1 + x2 - x3, y0 - y1 + y2 - y3]
  const turn = dx1 * dy2 - dx2 * dy1
  const g = (sx * dy2 - dx2 * sy) / turn
  const h = (dx1 * sy - sx * dy1) / turn
  const across = { x: (x1 - x0 + g * x1) / width, y: (y1 - y0 + g * y1) / width, w: g / width }
  const down = { x: (x3 - x0 + h * x3) / height, y: (y3 - y0 + h * y3) / height, w: h / height }
  const map = { across, down, one: { x: x0, y: y0, w: 1 } }
  const area = across.x * down.y - across.y * down.x
  return Number.isFinite(g + h) && Math.abs(area) > Number.EPSILON ? map : undefined
}
