import { type Points, pointAt } from './polygon.ts'

/** Distance that a round corner may keep from a true arc, as in pyclipper. */
const ARC_TOLERANCE = 0.25

/** Steps of round corners: how many there are in a radian, and the turn of one. */
interface ArcSteps {
  readonly perRadian: number
  readonly sin: number
  readonly cos: number
}

/**
 * Moves the edges of a convex polygon outwards, with round corners, as Clipper's offset does with JT_ROUND: onto whole numbers.
 *
 * @param points - whole numbers.
 * @returns a polygon whose convex hull is the offset polygon.
 */
export function offsetPolygon(points: Points, distance: number): Points {
  const corners = withoutRepeats(points)
  const count = corners.length / 2
  const steps = arcSteps(distance)
  const out: number[] = []
  for (let j = 0; j < count; j += 1) {
    const before = normal(corners, (j + count - 1) % count)
    out.push(...offsetCorner(pointAt(corners, j), before, normal(corners, j), { distance, steps }))
  }
  return out
}

/** Drops points equal to the one before, and turns the polygon the way round that Clipper takes for outer. */
function withoutRepeats(points: Points): Points {
  const all = Array.from({ length: points.length / 2 }, (_, i) => pointAt(points, i))
  const kept = all.filter(([x, y], i) => {
    const [px, py] = all.at(i - 1) ?? [x, y]
    return all.length === 1 || px !== x || py !== y
  })
  const doubled = kept.reduce((sum, [x, y], i) => {
    const [px, py] = kept.at(i - 1) ?? [x, y]
    return sum + (px * y - x * py)
  }, 0)
  return (doubled < 0 ? kept.toReversed() : kept).flat()
}

function arcSteps(distance: number): ArcSteps {
  const tolerance = Math.min(ARC_TOLERANCE, distance * ARC_TOLERANCE)
  const round = Math.min(Math.PI / Math.acos(1 - tolerance / distance), distance * Math.PI)
  const turn = (2 * Math.PI) / round
  return { perRadian: round / (2 * Math.PI), sin: Math.sin(turn), cos: Math.cos(turn) }
}

function normal(corners: Points, i: number): readonly [number, number] {
  const [ax, ay] = pointAt(corners, i)
  const [bx, by] = pointAt(corners, (i + 1) % (corners.length / 2))
  const [dx, dy] = [bx - ax, by - ay]
  const inverse = 1 / Math.sqrt(dx * dx + dy * dy)
  return [dy * inverse, -dx * inverse]
}

function offsetCorner(
  [x, y]: readonly [number, number],
  [kx, ky]: readonly [number, number],
  [jx, jy]: readonly [number, number],
  { distance, steps }: { readonly distance: number; readonly steps: ArcSteps },
): number[] {
  const moved = (nx: number, ny: number): number[] => [
    roundAway(x + nx * distance),
    roundAway(y + ny * distance),
  ]
  const sin = Math.max(-1, Math.min(1, kx * jy - jx * ky))
  const cos = kx * jx + ky * jy
  if (Math.abs(sin * distance) < 1 && cos > 0) return moved(kx, ky)
  if (sin < 0) return [...moved(kx, ky), x, y, ...moved(jx, jy)]
  const count = Math.max(roundAway(steps.perRadian * Math.abs(Math.atan2(sin, cos))), 1)
  const out: number[] = []
  let [nx, ny] = [kx, ky]
  for (let i = 0; i < count; i += 1) {
    out.push(...moved(nx, ny))
    ;[nx, ny] = [nx * steps.cos - steps.sin * ny, nx * steps.sin + ny * steps.cos]
  }
  return [...out, ...moved(jx, jy)]
}

function roundAway(value: number): number {
  return Math.trunc(value < 0 ? value - 0.5 : value + 0.5)
}
