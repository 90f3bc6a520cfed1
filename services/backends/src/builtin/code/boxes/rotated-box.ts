/** A box in pixels, turned about its middle by an angle in radians, clockwise on the screen. */
export interface RotatedBox {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
  readonly cos: number
  readonly sin: number
  /** From the middle to a corner. */
  readonly reach: number
}

export function toRotatedBox(numbers: Float32Array): RotatedBox {
  const [x = 0, y = 0, width = 0, height = 0, angle = 0] = numbers
  const reach = Math.hypot(width, height) / 2
  return { x, y, width, height, cos: Math.cos(angle), sin: Math.sin(angle), reach }
}

/** Signs of the corners, from the upper left one on, clockwise. */
const CORNERS = [
  [-0.5, -0.5],
  [0.5, -0.5],
  [0.5, 0.5],
  [-0.5, 0.5],
] as const

type Point = readonly [x: number, y: number]

export function cornersOf({ x, y, width, height, cos, sin }: RotatedBox): readonly Point[] {
  return CORNERS.map(([u, v]) => {
    const [across, down] = [u * width, v * height]
    return [x + across * cos - down * sin, y + across * sin + down * cos]
  })
}

/** Part of a box's area that may be missing from an intersection with one around it: sums are rounded. */
const ROUNDING = 1e-6

/** Computes how much of the area of two boxes together both have; 1 if one lies within the other, as in OpenCV. */
export function overlapOf(one: RotatedBox, other: RotatedBox): number {
  const [dx, dy, reach] = [one.x - other.x, one.y - other.y, one.reach + other.reach]
  if (dx * dx + dy * dy >= reach * reach) return 0
  const common = areaOf(clip(inFrame(one, cornersOf(other)), one))
  const areas = [one.width * one.height, other.width * other.height] as const
  if (common >= Math.min(...areas) * (1 - ROUNDING)) return 1
  return common / (areas[0] + areas[1] - common)
}

/** Gives points as a box sees them, whose middle is the origin and whose sides are the axes. */
function inFrame({ x, y, cos, sin }: RotatedBox, points: readonly Point[]): readonly Point[] {
  return points.map(([px, py]) => {
    const [dx, dy] = [px - x, py - y]
    return [dx * cos + dy * sin, dy * cos - dx * sin]
  })
}

/** Cuts a convex polygon to an upright rectangle about the origin. */
function clip(
  polygon: readonly Point[],
  { width, height }: Pick<RotatedBox, 'width' | 'height'>,
): readonly Point[] {
  let points = polygon
  for (const [axis, sign, limit] of [
    [0, 1, width / 2],
    [0, -1, width / 2],
    [1, 1, height / 2],
    [1, -1, height / 2],
  ] as const) {
    points = cut(points, (point) => limit - sign * point[axis])
  }
  return points
}

/** Keeps what lies on one side of a line (Sutherland and Hodgman). @param inside - distance of a point from the line, below 0 outside. */
function cut(points: readonly Point[], inside: (point: Point) => number): readonly Point[] {
  return points.flatMap((point, i) => {
    const before = points.at(i - 1) ?? point
    const [from, to] = [inside(before), inside(point)]
    const crossing: Point[] =
      from >= 0 === to >= 0 ? [] : [between(before, point, from / (from - to))]
    return to >= 0 ? [...crossing, point] : crossing
  })
}

function between([ax, ay]: Point, [bx, by]: Point, part: number): Point {
  return [ax + (bx - ax) * part, ay + (by - ay) * part]
}

function areaOf(points: readonly Point[]): number {
  const twice = points.reduce((sum, [x, y], i) => {
    const [px, py] = points.at(i - 1) ?? [0, 0]
    return sum + px * y - py * x
  }, 0)
  return Math.abs(twice) / 2
}
