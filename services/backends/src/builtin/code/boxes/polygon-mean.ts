import { type Point, type Points, pointAt } from './polygon.ts'

/** A map of numbers, row after row. */
export interface NumberMap {
  readonly width: number
  readonly height: number
  readonly values: Float32Array
}

/** The part of a map that a polygon's bounds cut out, with marks of the pixels in the polygon. */
interface Mask {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
  readonly marks: Uint8Array
}

/** Fixed point of the edges, as OpenCV has it. */
const ONE = 65536

/**
 * Computes the mean of a map's values in a convex polygon, as cv2.mean over a mask of cv2.fillPoly does: pixels of the edges count,
 * and corners are cut to whole numbers within the polygon's bounds.
 */
export function polygonMean(map: NumberMap, points: Points): number {
  const mask = fillPolygon(map, points)
  let sum = 0
  let count = 0
  for (let y = 0; y < mask.height; y += 1) {
    const row = (mask.y + y) * map.width + mask.x
    for (let x = 0; x < mask.width; x += 1) {
      if (mask.marks[y * mask.width + x] === 0) continue
      sum += map.values[row + x] ?? 0
      count += 1
    }
  }
  return count === 0 ? 0 : sum / count
}

function fillPolygon(map: NumberMap, points: Points): Mask {
  const xs = points.filter((_, i) => i % 2 === 0)
  const ys = points.filter((_, i) => i % 2 === 1)
  const x = clip(Math.floor(Math.min(...xs)), map.width)
  const y = clip(Math.floor(Math.min(...ys)), map.height)
  const width = clip(Math.ceil(Math.max(...xs)), map.width) - x + 1
  const height = clip(Math.ceil(Math.max(...ys)), map.height) - y + 1
  const mask = { x, y, width, height, marks: new Uint8Array(width * height) }
  const corners = points.map((value, i) => Math.trunc(Math.fround(value - (i % 2 === 0 ? x : y))))
  fillRows(mask, corners)
  for (let i = 0; i < corners.length / 2; i += 1) {
    drawLine(mask, pointAt(corners, i), pointAt(corners, (i + 1) % (corners.length / 2)))
  }
  return mask
}

/** Marks the pixels between the edges of each row. */
function fillRows(mask: Mask, corners: Points): void {
  const { width, height, marks } = mask
  const crossings = Array.from({ length: height }, (): number[] => [])
  const count = corners.length / 2
  for (let i = 0; i < count; i += 1) {
    const [a, b] = [pointAt(corners, i), pointAt(corners, (i + 1) % count)]
    const [from, to] = a[1] < b[1] ? [a, b] : [b, a]
    const [[x0, y0], [x1, y1]] = clipLine(mask, from, to).ends
    const [[cx0, cy0], [cx1, cy1]] = y0 === y1 ? [from, to] : [[x0, y0] as const, [x1, y1] as const]
    const slope = Math.trunc(((cx1 - cx0) * ONE) / (cy1 - cy0))
    for (let y = Math.max(from[1], 0); y < Math.min(to[1], height); y += 1) {
      crossings[y]?.push(cx0 * ONE + (y - cy0) * slope)
    }
  }
  crossings.forEach((found, y) => {
    const sorted = found.toSorted((a, b) => a - b)
    for (let i = 0; i + 1 < sorted.length; i += 2) {
      const begin = Math.max(Math.ceil((sorted[i] ?? 0) / ONE), 0)
      const end = Math.min(Math.floor((sorted[i + 1] ?? 0) / ONE) + 1, width)
      if (begin < end) marks.fill(1, y * width + begin, y * width + end)
    }
  })
}

/** Marks the pixels of a line, as Bresenham does from left to right. */
function drawLine(mask: Mask, a: Point, b: Point): void {
  const clipped = clipLine(mask, a, b)
  if (!clipped.isVisible) return
  const [from, to] = clipped.ends
  const [[x0, y0], [x1, y1]] = to[0] < from[0] ? [to, from] : [from, to]
  const down = Math.sign(y1 - y0)
  const [dx, dy] = [x1 - x0, Math.abs(y1 - y0)]
  const [long, short] = dx >= dy ? [dx, dy] : [dy, dx]
  let error = long - 2 * short
  let [x, y] = [x0, y0]
  for (let i = 0; i <= long; i += 1) {
    mask.marks[y * mask.width + x] = 1
    const both = error < 0
    error += (both ? 2 * long : 0) - 2 * short
    if (dx >= dy || both) x += 1
    if (dx < dy || both) y += down
  }
}

/** Cuts a line to the mask, each end on its own, as OpenCV does: rows first, and cut to whole numbers in between. */
function clipLine(
  { width, height }: Mask,
  a: Point,
  b: Point,
): { readonly ends: readonly [Point, Point]; readonly isVisible: boolean } {
  let [from, to] = [a, b]
  const isVisible = (): boolean =>
    !isApart(from[0], to[0], width) && !isApart(from[1], to[1], height)
  if (isVisible()) from = cutRow(from, to, height)
  if (isVisible()) to = cutRow(to, from, height)
  if (isVisible()) from = cutColumn(from, to, width)
  if (isVisible()) to = cutColumn(to, from, width)
  return { ends: [from, to], isVisible: isVisible() }
}

/** Whether two values are both before the first or behind the last. */
function isApart(a: number, b: number, extent: number): boolean {
  return (a < 0 && b < 0) || (a >= extent && b >= extent)
}

function cutRow([x, y]: Point, [ox, oy]: Point, height: number): Point {
  const edge = clip(y, height)
  return edge === y ? [x, y] : [x + Math.trunc(((edge - y) * (ox - x)) / (oy - y)), edge]
}

function cutColumn([x, y]: Point, [ox, oy]: Point, width: number): Point {
  const edge = clip(x, width)
  return edge === x ? [x, y] : [edge, y + Math.trunc(((edge - x) * (oy - y)) / (ox - x))]
}

function clip(value: number, extent: number): number {
  return Math.min(Math.max(value, 0), extent - 1)
}
