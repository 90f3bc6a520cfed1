/** A quotient of two rates; absent, not NaN, where there was nothing to divide by. */
export function ratio(above, below, scale = '') {
  return `${above} / (${below} > 0)${scale === '' ? '' : ` ${scale}`}`
}

/** A quantile of the histogram by these labels; absent where nothing was observed. */
export function quantile(share, histogram, labels, selector) {
  const by = labels.join(', ')
  const buckets = `sum by (le, ${by}) (rate(${histogram}_bucket{${selector}}[5m]))`
  return `histogram_quantile(${share}, ${buckets}) >= 0`
}

/** The mean of what the histogram observed, by these labels. */
export function mean(histogram, labels, selector) {
  const by = labels.join(', ')
  const rate = (part) => `sum by (${by}) (rate(${histogram}_${part}{${selector}}[5m]))`
  return ratio(rate('sum'), rate('count'))
}
