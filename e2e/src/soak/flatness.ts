/** How often something was measured while one set of processes lived: round and value. Rounds rise. */
export type Measured = readonly (readonly [number, number])[]

/** How a quantity grows with one more round, and between what limits that is certain. */
export interface Trend {
  readonly perRound: number
  readonly least: number
  readonly most: number
  readonly points: number
}

/** `flat`: certainly at most the bound. `growing`: certainly above it. `undecided`: there are too few rounds to say, or too much noise. */
export type Verdict = 'flat' | 'growing' | 'undecided'

/** Standard deviations; one quantity in 700 that does not grow is called growing, and only if its bound is 0. */
const CERTAINTY = 3
/** A day has 500 rounds, whose pairs would take longer than a round. */
const MOST_POINTS = 150
const FEWEST_POINTS = 4

/**
 * The estimator of Theil and Sen: the median of the slopes of all pairs of points, which a third of outliers does not move, with Sen's
 * limits. Only points of one piece make pairs: another piece had other processes.
 *
 * @returns undefined if there are too few points.
 * @see Sen, P. K., Estimates of the regression coefficient based on Kendall's tau, 1968
 */
export function trendOf(pieces: readonly Measured[]): Trend | undefined {
  const thinned = pieces.map(thin).filter(({ length }) => length >= FEWEST_POINTS)
  const slopes = thinned.flatMap(slopesOf).toSorted((a, b) => a - b)
  if (slopes.length === 0) return undefined
  const deviation =
    CERTAINTY * Math.sqrt(thinned.reduce((sum, piece) => sum + varianceOf(piece), 0))
  const at = (rank: number): number =>
    slopes[Math.min(slopes.length - 1, Math.max(0, Math.round(rank)))] ?? 0
  const middle = (slopes.length - 1) / 2
  return {
    perRound: (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2,
    least: limit(middle - deviation / 2 < 0, -Infinity, at(middle - deviation / 2)),
    most: limit(middle + deviation / 2 > slopes.length - 1, Infinity, at(middle + deviation / 2)),
    points: thinned.reduce((sum, { length }) => sum + length, 0),
  }
}

/** @param bound - most that the quantity may grow with a round. */
export function judge(trend: Trend | undefined, bound: number): Verdict {
  if (trend === undefined) return 'undecided'
  if (trend.least > bound) return 'growing'
  return trend.most <= bound ? 'flat' : 'undecided'
}

/** Fewer points say nothing certain about this side. */
function limit(isBeyond: boolean, unlimited: number, known: number): number {
  return isBeyond ? unlimited : known
}

function thin(points: Measured): Measured {
  const step = Math.ceil(points.length / MOST_POINTS)
  return points.filter((_, i) => i % step === 0)
}

function slopesOf(points: Measured): readonly number[] {
  return points.flatMap(([x, y], i) => points.slice(i + 1).map(([x2, y2]) => (y2 - y) / (x2 - x)))
}

/** Computes the variance of Kendall's score of points that are in no order. Ties would make it smaller. */
function varianceOf({ length: n }: Measured): number {
  return (n * (n - 1) * (2 * n + 5)) / 18
}
