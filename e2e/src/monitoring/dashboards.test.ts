// needs: nats, apiserver, prometheus
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '@tutti/chassis/testing'
import { withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { find, render } from '../chart/helm.ts'
import { checkParts, startCollector } from '../collector.ts'
import { openClient } from '../grpc-client.ts'
import { SKIP } from '../processes/harness.ts'
import { startLoad } from '../processes/load.ts'
import { mixedQuestion } from '../processes/questions.ts'
import { fp32, row } from '../tensors.ts'
import {
  DASHBOARDS,
  type Dashboard,
  FOLDER,
  fillVariables,
  panelQueries,
} from './dashboard-files.ts'
import { startServed, startServedOperator } from './monitored-system.ts'
import { type Prometheus, type Sample, startPrometheus, withoutPrometheus } from './prometheus.ts'

t.setTimeout(300_000)

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'
const PARENT_ID = 'b7ad6b7169203331'

const TELEMETRY = {
  'telemetry.otlpEndpoint': 'http://c:4318',
  'telemetry.headersSecret': 'otlp',
}

const FILES = DASHBOARDS.map(({ file }) => file)

/** Units that an expression can have, by what its metrics count and whether it is a rate. */
function unitsOf(expr: string): readonly string[] {
  const isSeconds = /_us\{.*\/ 1e6|_(?:seconds|secs)(?:_bucket|_sum)?\{/.test(expr)
  const isCount = /_seconds_count\{/.test(expr) && !/_sum\{/.test(expr)
  // Time spent in each second of time is a number.
  if (/^sum by \([^)]*\) \(rate\(\w+_us\{[^}]*\}\[5m\]\)\) \/ 1e6$/.test(expr)) return ['short']
  if (isSeconds && !isCount) return ['s']
  const isRate = expr.includes('rate(')
  if (/_bytes/.test(expr)) return [isRate ? 'Bps' : 'bytes']
  if (isRate && expr.includes(' / (')) return ['percentunit', 'short']
  return isRate ? ['reqps', 'ops', 'cps'] : ['short', 'bool']
}

await t.test('each panel says what it shows, in a unit that fits', async (t) => {
  t.same(FILES.toSorted(), [
    'ensemble.json',
    'model.json',
    'nats.json',
    'operator.json',
    'router.json',
    'tutti.json',
  ])
  t.equal(new Set(DASHBOARDS.map(({ uid }) => uid)).size, FILES.length)
  for (const { title, panels } of DASHBOARDS) {
    t.equal(new Set(panels.map((panel) => panel.title)).size, panels.length, title)
    for (const panel of panels) {
      const what = `${title}: ${panel.title}`
      t.match(panel.description, /\w.*\.$/, what)
      const { unit } = panel.fieldConfig.defaults
      for (const { expr } of panel.targets) t.ok(unitsOf(expr).includes(unit), `${what}: ${expr}`)
    }
  }
})

await t.test('the ConfigMap has them as they are', { skip: withoutKube('helm') }, async (t) => {
  const objects = await render({ 'metrics.dashboards.enabled': true })
  const { data } = find(objects, 'ConfigMap', 'tutti-dashboard')
  t.same(Object.keys(data).toSorted(), FILES.toSorted())
  for (const file of FILES) t.equal(data[file], readFileSync(join(FOLDER, file), 'utf8'), file)
})

const skip = SKIP || withoutKube('helm') || withoutPrometheus()

await t.test('every query of every panel shows a real run', { skip }, async (t) => {
  const collector = await startCollector(t)
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_TRACES_SAMPLER_ARG: '0' }
  const [served, operator] = await Promise.all([
    startServed(t, 'tcp', env),
    startServedOperator(t, TELEMETRY),
  ])
  const prometheus = await startPrometheus(t, {
    targets: [...served.targets, ...operator.targets],
  })
  startLoad(t, { targets: [served.router], clients: 3, question: mixedQuestion })
  const client = openClient(t, served.router)
  const wrong = { modelName: 'ens_chain', inputs: [fp32('X', [1, 2], [1, 2])] }
  await t.rejects(client.infer(wrong))
  const traceparent = `00-${TRACE_ID}-${PARENT_ID}-01`
  const chain = { modelName: 'ens_chain', inputs: [row('X')] }
  await client.infer(chain, { headers: { traceparent } })

  /** Until the expression has a value; the operator has something to do meanwhile. */
  const read = async (expr: string): Promise<readonly Sample[]> => {
    const look = async (): Promise<readonly Sample[] | undefined> => {
      const samples = await prometheus.query(expr)
      if (samples.some(({ value }) => Number.isFinite(value))) return samples
      await operator.change()
      return undefined
    }
    return await until(`${expr} has a value`, look)
  }

  for (const dashboard of DASHBOARDS) {
    await t.test(dashboard.title, async (t) => {
      for (const { name, query } of dashboard.templating.list) {
        if (name !== 'datasource')
          t.ok((await valuesOf(query, dashboard, prometheus)).length > 0, name)
      }
      for (const { title, targets } of dashboard.panels) {
        for (const { expr, legendFormat } of targets) {
          const samples = await read(fillVariables(dashboard.file, expr))
          const legends = samples.map(({ metric }) => fillLegend(legendFormat, metric))
          t.notMatch(legendFormat, /^[^{]*$/, `${title}: its legend tells series apart`)
          t.strictSame(
            legends.filter((one) => one.includes('{{')),
            [],
            `${title}: ${expr}`,
          )
          t.equal(new Set(legends).size, legends.length, `${title}: each has its own legend`)
        }
      }
    })
  }

  await t.test('panels show the trace of a sampled request, which is one trace', async (t) => {
    for (const part of ['queue', 'transfer', 'computation']) {
      const title = part === 'queue' ? `in the ${part}` : `of the ${part}`
      for (const { expr, exemplar } of panelQueries('ensemble.json', `Steps: time ${title}`)) {
        t.equal(exemplar, true)
        const found = await until('both steps have one', async () => {
          const all = await prometheus.exemplars(fillVariables('ensemble.json', expr))
          return all.length > 1 && all
        })
        // All other requests are not traced.
        t.same(
          found.map(({ series, labels }) => `${series['step']} ${labels['trace_id']}`).toSorted(),
          ['add_one_batch#0', 'add_one_batch#1'].map((step) => `${step} ${TRACE_ID}`),
        )
      }
    }
    const spans = await until(
      'all spans came',
      () => collector.spans.length >= 10 && collector.spans,
    )
    t.ok(spans.every(({ traceId }) => traceId === TRACE_ID))
    const below = (parent: string | undefined) =>
      spans.filter(({ parentSpanId }) => parentSpanId === parent)
    const [request] = below(PARENT_ID)
    t.match(below(PARENT_ID), [{ name: 'infer ens_chain' }])
    const [part, ...others] = below(request?.spanId)
    t.match(part, { name: 'execute steps of ens_chain' }, 'one replica has both')
    t.same(others, [])
    const calls = below(part?.spanId)
    t.equal(calls.length, 2)
    for (const call of calls) {
      t.equal(call.name, 'execute add_one_batch')
      checkParts(t, call, spans)
    }
  })

  await t.test('the collector of the chart reaches the pods of routers and steps', async (t) => {
    for (const [deployment, service] of [
      ['tutti-router', 'tutti-router'],
      ['adder-step', 'tutti-step'],
    ] as const) {
      t.match(await operator.environmentOf(deployment), [
        { name: 'HOME' },
        { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
        { name: 'OTEL_EXPORTER_OTLP_ENDPOINT', value: 'http://c:4318' },
        {
          name: 'OTEL_EXPORTER_OTLP_HEADERS',
          valueFrom: { secretKeyRef: { name: 'otlp', key: 'headers', optional: true } },
        },
        { name: 'OTEL_RESOURCE_ATTRIBUTES', value: /^k8s\.namespace\.name=team-a,/ },
        { name: 'OTEL_SERVICE_NAME', value: service },
        { name: 'OTEL_TRACES_SAMPLER_ARG', value: '1' },
      ])
    }
  })
})

/** Finds what a variable of the dashboard offers. */
async function valuesOf(query: string, dashboard: Dashboard, prometheus: Prometheus) {
  const groups = /^label_values\((?<series>.*), (?<label>\w+)\)$/.exec(query)?.groups
  const { series = '', label = '' } = groups ?? {}
  return await until(`${query} has a value`, async () => {
    const values = await prometheus.labelValues(fillVariables(dashboard.file, series), label)
    return values.length > 0 && values
  })
}

/** As Grafana does; a label that the series lacks stays as it is written. */
function fillLegend(legend: string, labels: Sample['metric']): string {
  return legend.replaceAll(/\{\{(\w+)\}\}/g, (whole, name: string) => labels[name] || whole)
}
