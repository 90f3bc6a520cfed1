import { convexHull, type Point, type Points, pointAt, type SlantedRectangle } from './polygon.ts'

const f = Math.fround

/** Best rectangle so far, with its base vector and the points that its left and bottom sides touch. */
interface Candidate {
  readonly area: number
  readonly base: readonly [number, number]
  readonly width: number
  readonly height: number
  readonly left: number
  readonly bottom: number
}

/** Where the four sides touch the hull: bottom, right, top, left. */
type Touches = [number, number, number, number]

/**
 * Computes the rectangle of least area around points, as OpenCV's minAreaRect does: by rotating calipers from the upright rectangle
 * on, in float32, and of equal areas the last.
 */
export function minAreaRectangle(points: Points): SlantedRectangle {
  const hull = convexHull(points)
  const count = hull.length / 2
  if (count > 2) return rectangleOf(hull, bestCandidate(hull))
  const [ax, ay] = pointAt(hull, 0)
  const [bx, by] = pointAt(hull, count - 1)
  return { corners: [ax, ay, ax, ay, bx, by, bx, by], sides: [f(Math.hypot(bx - ax, by - ay)), 0] }
}

function bestCandidate(hull: Points): Candidate {
  const count = hull.length / 2
  const edge = (i: number): readonly [number, number] => {
    const [ax, ay] = pointAt(hull, i)
    const [bx, by] = pointAt(hull, (i + 1) % count)
    return [bx - ax, by - ay]
  }
  const touches = extremes(hull)
  let best: Candidate | undefined
  for (let k = 0; k < count; k += 1) {
    const side = nextSide(touches, edge)
    const [dx, dy] = edge(touches[side] ?? 0)
    const inverse = f(1 / Math.sqrt(dx * dx + dy * dy))
    const lead = [f(dx * inverse), f(dy * inverse)] as const
    touches[side] = ((touches[side] ?? 0) + 1) % count
    const candidate = measure(hull, touches, turned(lead, side))
    if (best === undefined || candidate.area <= best.area) best = candidate
  }
  return best ?? { area: 0, base: [1, 0], width: 0, height: 0, left: 0, bottom: 0 }
}

/** Finds the points that are farthest out; the first of the hull where several are as far. */
function extremes(hull: Points): Touches {
  const touches: Touches = [0, 0, 0, 0]
  for (let i = 0; i < hull.length / 2; i += 1) {
    const [x, y] = pointAt(hull, i)
    if (y < pointAt(hull, touches[0])[1]) touches[0] = i
    if (x > pointAt(hull, touches[1])[0]) touches[1] = i
    if (y > pointAt(hull, touches[2])[1]) touches[2] = i
    if (x < pointAt(hull, touches[3])[0]) touches[3] = i
  }
  return touches
}

/** The side whose hull edge comes first when the calipers turn. */
function nextSide(touches: Touches, edge: (i: number) => readonly [number, number]): number {
  let next = 0
  let [nx, ny] = edge(touches[0])
  for (let side = 1; side < 4; side += 1) {
    const [x, y] = turned(edge(touches[side] ?? 0), side)
    if (y * nx - x * ny >= 0) continue
    next = side
    ;[nx, ny] = [x, y]
  }
  return next
}

/** Turns a vector of a side into that of the bottom. */
function turned([x, y]: readonly [number, number], side: number): readonly [number, number] {
  if (side === 1) return [y, -x]
  if (side === 2) return [-x, -y]
  return side === 3 ? [-y, x] : [x, y]
}

function measure(
  hull: Points,
  [bottom, right, top, left]: Touches,
  base: readonly [number, number],
): Candidate {
  const [a, b] = base
  const [lx, ly] = pointAt(hull, left)
  const [rx, ry] = pointAt(hull, right)
  const [tx, ty] = pointAt(hull, top)
  const [bx, by] = pointAt(hull, bottom)
  const width = f(f((rx - lx) * a) + f((ry - ly) * b))
  const height = f(f(-(tx - bx) * b) + f((ty - by) * a))
  return { area: f(width * height), base, width, height, left, bottom }
}

/** By its centre, its sides and its angle in degrees, each rounded to float32 on the way, which makes the same last bits. */
function rectangleOf(
  hull: Points,
  { base: [a, b], width, height, left, bottom }: Candidate,
): SlantedRectangle {
  const [lx, ly] = pointAt(hull, left)
  const [bx, by] = pointAt(hull, bottom)
  const c1 = f(f(a * lx) + f(ly * b))
  const c2 = f(f(-b * bx) + f(by * a))
  const inverse = f(1 / f(f(a * a) + f(b * b)))
  const x = f(f(f(c1 * a) - f(c2 * b)) * inverse)
  const y = f(f(f(a * c2) + f(b * c1)) * inverse)
  const [wx, wy] = [f(a * width), f(b * width)]
  const [hx, hy] = [f(-b * height), f(a * height)]
  const center: Point = [f(x + f(f(wx + hx) * 0.5)), f(y + f(f(wy + hy) * 0.5))]
  // The angle is below 0, so that width and height change places.
  const degrees = f(f((Math.atan2(wy, wx) * 180) / Math.PI) - 90)
  const sides = [f(Math.sqrt(hx * hx + hy * hy)), f(Math.sqrt(wx * wx + wy * wy))] as const
  return { corners: cornersOf(center, sides, degrees), sides }
}

function cornersOf(
  [x, y]: Point,
  [width, height]: readonly [number, number],
  degrees: number,
): Points {
  const angle = (degrees * Math.PI) / 180
  const b = f(f(Math.cos(angle)) * 0.5)
  const a = f(f(Math.sin(angle)) * 0.5)
  const x0 = f(f(x - f(a * height)) - f(b * width))
  const y0 = f(f(y + f(b * height)) - f(a * width))
  const x1 = f(f(x + f(a * height)) - f(b * width))
  const y1 = f(f(y - f(b * height)) - f(a * width))
  return [x0, y0, x1, y1, f(2 * x - x0), f(2 * y - y0), f(2 * x - x1), f(2 * y - y1)]
}
