/** Points in one list: x and y of the first, x and y of the second, and so on. */
export type Points = readonly number[]

export type Point = readonly [x: number, y: number]

/** A rectangle that may lie aslant: its corners in order, and its two sides, as float32. */
export interface SlantedRectangle {
  readonly corners: Points
  readonly sides: readonly [number, number]
}

/** Returns a point of a list. */
export function pointAt(points: Points, i: number): Point {
  return [points[2 * i] ?? 0, points[2 * i + 1] ?? 0]
}

/**
 * Computes the convex hull (Andrew's monotone chain), without points on its edges. On a screen, where y grows downwards, it goes
 * clockwise from the leftmost point, the upper of two.
 */
export function convexHull(points: Points): Points {
  const sorted = Array.from({ length: points.length / 2 }, (_, i) => pointAt(points, i)).toSorted(
    ([ax, ay], [bx, by]) => ax - bx || ay - by,
  )
  const upper = halfHull(sorted)
  const lower = halfHull(sorted.toReversed())
  return [...upper.slice(0, -1), ...lower.slice(0, -1)]
    .flat()
    .concat(upper.length === 1 ? (upper[0] ?? []) : [])
}

function halfHull(sorted: readonly (readonly [number, number])[]): (readonly [number, number])[] {
  const hull: (readonly [number, number])[] = []
  for (const [x, y] of sorted) {
    for (;;) {
      const [bx, by] = hull.at(-1) ?? [x, y]
      const [ax, ay] = hull.at(-2) ?? [bx, by]
      const isSame = hull.length === 1 && bx === x && by === y
      const turn = (bx - ax) * (y - ay) - (by - ay) * (x - ax)
      if (!isSame && (hull.length < 2 || turn > 0)) break
      hull.pop()
    }
    hull.push([x, y])
  }
  return hull
}

/** Computes the area (the shoelace formula) and the length around a polygon. */
export function measurePolygon(points: Points): { readonly area: number; readonly length: number } {
  let doubled = 0
  let length = 0
  const count = points.length / 2
  for (let i = 0; i < count; i += 1) {
    const [ax, ay] = pointAt(points, i)
    const [bx, by] = pointAt(points, (i + 1) % count)
    doubled += ax * by - bx * ay
    length += Math.hypot(bx - ax, by - ay)
  }
  return { area: Math.abs(doubled) / 2, length }
}
