import * as fc from 'fast-check'
import t from 'tap'
import { LatencyHistogram } from './latency-histogram.ts'

const QUANTILES = [0, 0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1]

function histogramOf(values: readonly number[]): LatencyHistogram {
  const histogram = new LatencyHistogram()
  for (const value of values) histogram.record(value)
  return histogram
}

await t.test('quantiles are those of the sorted values, to 0.4 %', async () => {
  // From nanoseconds to a day.
  const ms = fc.double({ min: -6, max: 7.9, noNaN: true }).map((exponent) => 10 ** exponent)
  const holds = fc.property(fc.array(ms, { minLength: 1, maxLength: 400 }), (values) => {
    const histogram = histogramOf(values)
    const sorted = values.map((value) => Math.round(value * 1e6) / 1e6).toSorted((a, b) => a - b)
    return QUANTILES.every((q) => {
      const wanted = sorted[Math.max(1, Math.ceil(q * sorted.length)) - 1] ?? Number.NaN
      const got = histogram.quantileMs(q) ?? Number.NaN
      return Math.abs(got - wanted) <= wanted / 256 + 1e-6
    })
  })
  fc.assert(holds, { numRuns: 200 })
})

await t.test('a known distribution has its known quantiles', async (t) => {
  // Exponential with a mean of 10 ms, at its own quantiles.
  const count = 100_000
  const values = Array.from({ length: count }, (_, i) => -10 * Math.log(1 - (i + 0.5) / count))
  const histogram = histogramOf(values.toReversed())
  for (const q of [0.5, 0.9, 0.99, 0.999]) {
    const wanted = -10 * Math.log(1 - q)
    const got = histogram.quantileMs(q) ?? 0
    t.ok(Math.abs(got / wanted - 1) < 0.005, `${q}: got ${got}, want ${wanted}`)
  }
  t.ok(Math.abs((histogram.meanMs ?? 0) / 10 - 1) < 0.001)
  t.equal(histogram.quantileMs(1), Math.round((values.at(-1) ?? 0) * 1e6) / 1e6)
})

await t.test('a histogram takes no value, one value, and values that no clock gives', async (t) => {
  t.equal(histogramOf([]).quantileMs(0.5), undefined)
  t.equal(histogramOf([]).meanMs, undefined)
  t.same(
    QUANTILES.map((q) => histogramOf([3.7]).quantileMs(q)),
    QUANTILES.map(() => 3.7),
  )
  t.equal(histogramOf([-1]).quantileMs(1), 0, 'a clock that went back')
  t.equal(histogramOf([1e12, 1]).quantileMs(1), 1e12, 'longer than all buckets')
})
