import { roundToEven } from '@tutti/tensor'
import { minAreaRectangle } from './min-area-rectangle.ts'
import { offsetPolygon } from './offset-polygon.ts'
import { measurePolygon, type Points, pointAt } from './polygon.ts'
import { type NumberMap, polygonMean } from './polygon-mean.ts'
import { type BitMap, dilate, findBorders } from './regions.ts'

/** Least length of a short side, before and after a box grows. */
const MIN_SIDE = 3
const MIN_GROWN_SIDE = MIN_SIDE + 2
/** Boxes whose tops are as close as that are in one line, in pixels of the picture. */
const LINE_PX = 10

export interface MapBoxesOptions {
  readonly threshold: number
  readonly boxThreshold: number
  readonly unclipRatio: number
  readonly maxBoxes: number
  readonly dilate: boolean
}

export interface ScoredBox {
  /** Corners from the upper left one on, clockwise. */
  readonly corners: Points
  readonly score: number
}

/**
 * Makes boxes out of a map of probabilities, as PaddleOCR does for its detection network (DB): regions above a threshold, the
 * rectangle of least area around each, the mean of the map in it, and the rectangle again, grown by a ratio of area to length.
 *
 * @param picture - extents of the picture in whose pixels the boxes are.
 * @returns boxes in reading order: by lines, and in a line from the left.
 */
export function boxesOfMap(
  map: NumberMap,
  picture: { readonly width: number; readonly height: number },
  options: MapBoxesOptions,
): readonly ScoredBox[] {
  const over = { ...map, bits: threshold(map, options.threshold) }
  const bits: BitMap = options.dilate ? dilate(over) : over
  const found: ScoredBox[] = []
  for (const { points } of findBorders(bits).slice(0, options.maxBoxes)) {
    const box = boxOfBorder(map, points, options)
    if (box === undefined) continue
    const corners = toPicture(box.corners, { map, picture })
    if (corners !== undefined) found.push({ corners, score: box.score })
  }
  return inReadingOrder(found)
}

function threshold({ values }: NumberMap, least: number): Uint8Array {
  const bits = new Uint8Array(values.length)
  const bound = Math.fround(least)
  for (let i = 0; i < values.length; i += 1) bits[i] = (values[i] ?? 0) > bound ? 1 : 0
  return bits
}

function boxOfBorder(
  map: NumberMap,
  points: Points,
  { boxThreshold, unclipRatio }: MapBoxesOptions,
): ScoredBox | undefined {
  const { corners, sides } = minAreaRectangle(points)
  if (Math.min(...sides) < MIN_SIDE) return undefined
  const ordered = orderBySides(corners)
  const score = polygonMean(map, ordered)
  if (boxThreshold > score) return undefined
  const { area, length } = measurePolygon(ordered)
  const grown = offsetPolygon(
    ordered.map((value) => Math.trunc(value)),
    (area * unclipRatio) / length,
  )
  const outer = minAreaRectangle(grown)
  if (Math.min(...outer.sides) < MIN_GROWN_SIDE) return undefined
  return { corners: orderBySides(outer.corners), score }
}

/** Orders corners: the upper of the two leftmost, the upper of the two rightmost, and then the lower ones from the right. */
function orderBySides(corners: Points): Points {
  const points = [0, 1, 2, 3].map((i) => pointAt(corners, i)).toSorted(([ax], [bx]) => ax - bx)
  const byHeight = (from: number): (readonly [number, number])[] =>
    points.slice(from, from + 2).toSorted(([, ay], [, by]) => ay - by)
  const [leftTop = [0, 0], leftBottom = [0, 0]] = byHeight(0)
  const [rightTop = [0, 0], rightBottom = [0, 0]] = byHeight(2)
  return [...leftTop, ...rightTop, ...rightBottom, ...leftBottom]
}

/** Scales a box to the picture, onto its pixels. @returns undefined for one that is too small there. */
function toPicture(
  corners: Points,
  o: {
    readonly map: { readonly width: number; readonly height: number }
    readonly picture: { readonly width: number; readonly height: number }
  },
): Points | undefined {
  const scaled = corners.map((value, i) => {
    const [from, to] =
      i % 2 === 0 ? [o.map.width, o.picture.width] : [o.map.height, o.picture.height]
    const exact = Math.fround(Math.fround(value / from) * to)
    return Math.min(Math.max(roundToEven(exact), 0), to - 1)
  })
  const ordered = orderBySides(scaled)
  const [[ax, ay], [bx, by], [dx, dy]] = [
    pointAt(ordered, 0),
    pointAt(ordered, 1),
    pointAt(ordered, 3),
  ]
  const isSmall = [Math.hypot(bx - ax, by - ay), Math.hypot(dx - ax, dy - ay)].some(
    (side) => Math.trunc(side) <= MIN_SIDE,
  )
  return isSmall ? undefined : ordered
}

/** Sorts boxes by their first corner: from the top, and from the left where the tops are close. */
function inReadingOrder(boxes: readonly ScoredBox[]): readonly ScoredBox[] {
  const sorted = boxes.toSorted((a, b) => topOf(a) - topOf(b) || leftOf(a) - leftOf(b))
  for (let i = 1; i < sorted.length; i += 1) {
    for (let j = i; j > 0; j -= 1) {
      const [before, box] = [sorted[j - 1], sorted[j]]
      if (before === undefined || box === undefined) break
      if (Math.abs(topOf(box) - topOf(before)) >= LINE_PX || leftOf(box) >= leftOf(before)) break
      sorted[j - 1] = box
      sorted[j] = before
    }
  }
  return sorted
}

function topOf({ corners }: ScoredBox): number {
  return corners[1] ?? 0
}

function leftOf({ corners }: ScoredBox): number {
  return corners[0] ?? 0
}
