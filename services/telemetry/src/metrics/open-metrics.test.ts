import * as fc from 'fast-check'
import t from 'tap'
import { formatMetrics, type MetricFamily } from '../metrics-text.ts'
import { prefersOpenMetrics, toOpenMetrics } from './open-metrics.ts'

await t.test('the format is that which the scraper likes best', async (t) => {
  const cases: readonly (readonly [string | undefined, boolean])[] = [
    [undefined, false],
    ['', false],
    ['*/*', false],
    ['text/plain', false],
    // Prometheus 2 and 3.
    [
      'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
      true,
    ],
    [
      'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.4,*/*;q=0.2',
      true,
    ],
    // With scrape_protocols: [PrometheusText0.0.4, OpenMetricsText1.0.0].
    ['text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5', false],
    ['Application/OpenMetrics-Text ; Q=0.5', true],
    ['application/openmetrics-text;q=0', false],
    ['application/openmetrics-text;q=x', false],
  ]
  for (const [accept, wanted] of cases)
    t.equal(prefersOpenMetrics(accept), wanted, accept ?? 'none')
})

await t.test('names stay, and types become what OpenMetrics has for them', async (t) => {
  const text = [
    '# HELP nv_inference_count Number of "inferences"',
    '# TYPE nv_inference_count counter',
    'nv_inference_count{model="a"} 5',
    '',
    '# HELP tutti_sent_total a\\\\b',
    '# TYPE tutti_sent_total counter',
    'tutti_sent_total 1',
    '# HELP wait_seconds Wait',
    '# TYPE wait_seconds histogram',
    'wait_seconds_bucket{le="0.5",step="a"} 0',
    'wait_seconds_bucket{step=",le=\\"7\\"",le="1"} 2 # {trace_id="ab"} 0.75 1700000000.25',
    'wait_seconds_bucket{le="+Inf",step="a"} 2',
    '',
  ]
  t.same(toOpenMetrics(text.join('\n')).split('\n'), [
    '# HELP nv_inference_count Number of \\"inferences\\"',
    '# TYPE nv_inference_count unknown',
    'nv_inference_count{model="a"} 5',
    '# HELP tutti_sent a\\\\b',
    '# TYPE tutti_sent counter',
    'tutti_sent_total 1',
    '# HELP wait_seconds Wait',
    '# TYPE wait_seconds histogram',
    'wait_seconds_bucket{le="0.5",step="a"} 0',
    'wait_seconds_bucket{step=",le=\\"7\\"",le="1.0"} 2 # {trace_id="ab"} 0.75 1700000000.25',
    'wait_seconds_bucket{le="+Inf",step="a"} 2',
    '# EOF',
    '',
  ])
})

const FAMILY: fc.Arbitrary<MetricFamily> = fc.record({
  name: fc.stringMatching(/^[a-z_]{1,9}(_total)?$/),
  help: fc.string(),
  type: fc.constantFrom('counter', 'gauge', 'histogram', 'summary'),
  series: fc.array(
    fc.record({
      labels: fc.array(fc.tuple(fc.stringMatching(/^[a-z]{3,9}$/), fc.string()), { maxLength: 3 }),
      value: fc.double(),
    }),
  ),
})

function samplesOf(lines: readonly string[]): readonly string[] {
  return lines.filter((line) => line !== '' && !/^# (?:HELP|TYPE|EOF)/.test(line))
}

await t.test('whatever is in helps and labels, each line stays one and as it was', async () => {
  fc.assert(
    fc.property(fc.array(FAMILY), (families) => {
      const text = formatMetrics(families)
      const open = toOpenMetrics(text).split('\n')
      const [was, is] = [samplesOf(text.split('\n')), samplesOf(open)]
      const isSame = was.length === is.length && was.every((line, i) => line === is[i])
      const metadata = open.filter((line) => /^# (?:HELP|TYPE) /.test(line))
      return isSame && metadata.length === families.length * 2 && open.at(-2) === '# EOF'
    }),
  )
})
