import t from 'tap'
import { CustomMetrics } from './model-metrics.ts'

await t.test(
  'instances share what has the same name and labels, and it lasts as long as one has it',
  async (t) => {
    const all = new CustomMetrics()
    const [first, second] = [all.open(), all.open()]
    const make = (session: typeof first) =>
      session.metric(session.family('requests', 'Requests', 'counter'), [['model', 'm']], [])
    const [a, b] = [make(first), make(second)]
    first.update(a, 'increment', 2)
    second.update(b, 'increment', 3)
    t.equal(first.value(a), 5)
    t.same(all.read(), [
      {
        name: 'requests',
        help: 'Requests',
        type: 'counter',
        series: [{ labels: [['model', 'm']], value: 5 }],
      },
    ])
    first.close()
    t.equal(second.value(b), 5)
    second.close()
    t.same(all.read(), [])
  },
)

await t.test(
  'a metric goes with its last reference, its family with the last of both',
  async (t) => {
    const all = new CustomMetrics()
    const session = all.open()
    const family = session.family('g', 'G', 'gauge')
    const metric = session.metric(family, [], [])
    session.update(metric, 'set', Number.POSITIVE_INFINITY)
    session.remove(family)
    t.equal(all.read()[0]?.series[0]?.value, Number.POSITIVE_INFINITY)
    session.remove(metric)
    t.same(all.read(), [])
    t.throws(() => session.value(metric), { message: `there is no metric ${metric}` })
    t.throws(() => session.metric(family, [], []), {
      message: `there is no metric family ${family}`,
    })
  },
)

await t.test('histograms cumulate', async (t) => {
  const all = new CustomMetrics()
  const session = all.open()
  const metric = session.metric(session.family('h', 'H', 'histogram'), [], [1, 2.5])
  for (const value of [0.5, 1, 2, 99]) session.update(metric, 'observe', value)
  t.same(
    all.read()[0]?.series.map(({ suffix, labels, value }) => [suffix, ...labels.flat(), value]),
    [
      ['_bucket', 'le', '1', 2],
      ['_bucket', 'le', '2.5', 3],
      ['_bucket', 'le', '+Inf', 4],
      ['_sum', 102.5],
      ['_count', 4],
    ],
  )
})

await t.test('what Prometheus would not take is refused', async (t) => {
  const session = new CustomMetrics().open()
  const family = session.family('ok', 'H', 'gauge')
  t.throws(() => session.family('not ok', '', 'gauge'), {
    message: 'Invalid metric name: "not ok", want letters, digits, _ and :',
  })
  t.doesNotThrow(() => session.family('ok', 'other', 'gauge'))
  t.throws(() => session.family('ok', 'H', 'counter'), {
    reason: 'INVALID_REQUEST',
    message: 'Family name already exists with different type: "ok" is a gauge',
  })
  t.throws(() => session.metric(family, [['a-b', '']], []), {
    message: 'Invalid label name: "a-b", want letters, digits and _',
  })
  t.throws(() => session.family('nv_gpu_utilization', '', 'gauge'), { message: /the server's own/ })
  const histogram = session.family('h', '', 'histogram')
  t.throws(() => session.metric(histogram, [['le', '1']], [1]), { message: /"le"/ })
  t.throws(() => session.metric(histogram, [], [1, 1]), {
    message: 'Bucket Boundaries must be strictly sorted: [1, 1]',
  })
  for (let i = 0; i < 10_000; i += 1) session.metric(family, [['i', `${i}`]], [])
  t.throws(() => session.metric(family, [['i', 'more']], []), {
    reason: 'OVERLOADED',
    message: /want at most 10000/,
  })
})
