/** Computes by least squares how much `y` grows with one more of `x`. @param points - x and y; at least two different x. */
export function slopeOf(points: readonly (readonly [number, number])[]): number {
  const x = mean(points.map(([at]) => at))
  const y = mean(points.map(([, value]) => value))
  const covariance = mean(points.map(([at, value]) => (at - x) * (value - y)))
  return covariance / mean(points.map(([at]) => (at - x) ** 2))
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
