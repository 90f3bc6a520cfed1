import t from 'tap'
import { countRates, formatMs, formatRate, stepRates } from './rates.ts'

const COUNTS = { requests: 10, failures: 1, requestMs: 100, queueMs: 10, computeMs: 40 }
const STEP = {
  name: 's',
  model: 'm',
  version: -1,
  state: 'ready' as const,
  inputs: [],
  outputs: [],
  call: [],
  failures: 2,
  totals: { requests: 10, queueMs: 10, transferMs: 20, computeMs: 40 },
}

await t.test('rates are differences over the time between', async (t) => {
  const now = { requests: 30, failures: 3, requestMs: 300, queueMs: 50, computeMs: 100 }
  t.match(countRates(now, COUNTS, 2000), {
    requestsPerSecond: 10,
    failuresPerSecond: 1,
    requestMs: 10,
    queueMs: 2,
    computeMs: 3,
  })
})

await t.test(
  'there are no rates without an earlier reading, or when a model was loaded anew',
  async (t) => {
    t.equal(countRates(COUNTS, undefined, 1000), undefined)
    t.equal(countRates(COUNTS, COUNTS, 0), undefined)
    t.equal(countRates({ ...COUNTS, requests: 3 }, COUNTS, 1000), undefined)
    t.equal(countRates({ ...COUNTS, requests: 12, requestMs: 9 }, COUNTS, 1000), undefined)
    t.equal(stepRates(STEP, undefined, 1000), undefined)
    const { totals: _, ...uncounted } = STEP
    t.equal(stepRates(uncounted, STEP, 1000), undefined)
    t.equal(countRates(undefined, COUNTS, 1000), undefined)
    t.equal(stepRates({ ...STEP, name: 'other' }, STEP, 1000), undefined)
    t.equal(stepRates({ ...STEP, model: 'other' }, STEP, 1000), undefined)
  },
)

await t.test('a step has its own times within the ensemble', async (t) => {
  const totals = { requests: 20, queueMs: 20, transferMs: 50, computeMs: 90 }
  t.match(stepRates({ ...STEP, totals, failures: 4 }, STEP, 1000), {
    requestsPerSecond: 10,
    failuresPerSecond: 2,
    queueMs: 1,
    transferMs: 3,
    computeMs: 5,
    requestMs: 9,
  })
  const { failures: _, ...hidden } = STEP
  const pairs = [
    [hidden, hidden],
    [STEP, hidden],
    [hidden, STEP],
  ] as const
  for (const [now, before] of pairs) {
    t.ok(Number.isNaN(stepRates(now, before, 1000)?.failuresPerSecond), 'no jump where one lacks')
  }
})

await t.test('figures have three digits and a unit', async (t) => {
  t.same(
    [0, 0.0421, 0.9996, 4.21, 9.999, 42.13, 99.97, 421.3, 999.7, 4213, Number.NaN, undefined].map(
      formatMs,
    ),
    [
      '0 ms',
      '42.1 µs',
      '1.00 ms',
      '4.21 ms',
      '10.0 ms',
      '42.1 ms',
      '100 ms',
      '421 ms',
      '1.00 s',
      '4.21 s',
      '–',
      '–',
    ],
  )
  t.same([0, 0.0003, 0.5, 12.34, 1234, undefined].map(formatRate), [
    '0/s',
    '<0.01/s',
    '0.50/s',
    '12.3/s',
    '1,234/s',
    '–',
  ])
})
