// needs: nats, apiserver, prometheus
import { readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '@tutti/chassis/testing'
import { withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { parse, stringify } from 'yaml'
import { find, type Rendered, render } from '../chart/helm.ts'
import { openClient } from '../grpc-client.ts'
import { SKIP } from '../processes/harness.ts'
import { ROOT, runProgram } from '../serving.ts'
import { tempFolder } from '../temp-repository.ts'
import { fp32 } from '../tensors.ts'
import { fillVariables, panelQueries } from './dashboard-files.ts'
import { NAMESPACE, startServed, startServedOperator } from './monitored-system.ts'
import { type Alert, prometheusProgram, startPrometheus, withoutPrometheus } from './prometheus.ts'

t.setTimeout(300_000)

const UNIT_TESTS = join(import.meta.dirname, 'alerts.promtool.yaml')
const RUNBOOKS = join(ROOT, 'docs', 'runbooks')

/** The groups of the chart's rules. */
async function groupsOf(values: Readonly<Record<string, unknown>> = {}): Promise<Rendered[]> {
  const objects = await render({ 'metrics.prometheusRule.enabled': true, ...values })
  return find(objects, 'PrometheusRule', 'tutti')['spec'].groups
}

function alertsOf(groups: readonly Rendered[]): Rendered[] {
  return groups.flatMap(({ rules }) => rules)
}

/** The same rules where a minute is a second, as scrapes are a second apart and not half a minute. */
function inSeconds(groups: readonly Rendered[]): Rendered[] {
  return JSON.parse(JSON.stringify(groups).replaceAll(/\b(\d+)m\b/g, '$1s'))
}

await t.test('of the rules', { skip: withoutKube('helm') }, async (t) => {
  const alerts = alertsOf(
    await groupsOf({ 'metrics.prometheusRule.runbookUrl': 'https://wiki.example/tutti/' }),
  )
  const names = alerts.map(({ alert }) => String(alert))

  await t.test('each has a page, which it links, and a test that it fires', async (t) => {
    t.same(readdirSync(RUNBOOKS).toSorted(), names.map((name) => `${name}.md`).toSorted())
    for (const { alert, annotations } of alerts) {
      t.equal(annotations.runbook_url, `https://wiki.example/tutti/${alert}.md`)
      const page = readFileSync(join(RUNBOOKS, `${alert}.md`), 'utf8')
      for (const part of ['What it means', 'What to look at', 'How to mend it']) {
        t.ok(page.includes(`\n## ${part}\n`), `${alert}: ${part}`)
      }
    }
    const tested: readonly Rendered[] = parse(readFileSync(UNIT_TESTS, 'utf8')).tests
    const fired = tested
      .flatMap((one) => one['alert_rule_test'])
      .filter((one: Rendered) => one['exp_alerts'].length > 0)
    t.same(
      [...new Set(fired.map(({ alertname }) => String(alertname)))].toSorted(),
      names.toSorted(),
    )
  })

  await t.test('none links a page where none is published', async (t) => {
    for (const { annotations } of alertsOf(await groupsOf())) {
      t.same(Object.keys(annotations), ['summary'])
    }
  })

  await t.test('values set the limits', async (t) => {
    const others = alertsOf(
      await groupsOf({
        'metrics.prometheusRule.stepSeconds': 0.5,
        'metrics.prometheusRule.waitingRequests': 7,
      }),
    )
    const named = (name: string): Rendered => others.find(({ alert }) => alert === name) ?? {}
    const { annotations, expr } = named('TuttiStepSlow')
    t.match(expr, /> 0\.5$/)
    t.match(annotations.summary, /more than 0\.5 s/)
    t.match(named('TuttiRequestsWait')['expr'], /> 7$/)
  })

  await t.test('promtool tests each', { skip: withoutPrometheus() }, async (t) => {
    const folder = await tempFolder(t)
    const rules = join(folder, 'rules.yaml')
    const tests = join(folder, 'tests.yaml')
    await writeFile(tests, readFileSync(UNIT_TESTS))
    await writeFile(rules, stringify({ groups: await groupsOf() }))
    const checked = await runProgram(prometheusProgram('promtool'), ['check', 'rules', rules])
    t.equal(checked.code, 0, checked.out + checked.err)
    const groups = (await groupsOf()).map(({ name, rules: all }) => ({
      name,
      // Their texts are for people: the unit tests are about when, and for which labels.
      rules: all.map((rule: Rendered) => ({ ...rule, annotations: {} })),
    }))
    await writeFile(rules, stringify({ groups }))
    const tested = await runProgram(prometheusProgram('promtool'), ['test', 'rules', tests])
    t.equal(tested.code, 0, tested.out + tested.err)
  })
})

const skip = SKIP || withoutKube('helm') || withoutPrometheus()

await t.test(
  'faults of a real run: the panel shows it, the alert comes and goes',
  { skip },
  async (t) => {
    const [served, operator] = await Promise.all([startServed(t, 'off'), startServedOperator(t)])
    const prometheus = await startPrometheus(t, {
      targets: [...served.targets, ...operator.targets],
      groups: inSeconds(await groupsOf()),
    })
    const firing = async (name: string): Promise<readonly Alert[]> =>
      (await prometheus.alerts()).filter(({ labels, state }) => {
        return labels['alertname'] === name && state === 'firing'
      })
    const fires = (name: string, labels: Alert['labels']): Promise<Alert> =>
      until(`${name} fires`, async () =>
        (await firing(name)).find((one) =>
          Object.entries(labels).every(([label, value]) => one.labels[label] === value),
        ),
      )
    const resolves = (name: string): Promise<unknown> =>
      until(`${name} is over`, async () => (await firing(name)).length === 0)
    /** Reads what a panel shows, of the series with a label. */
    const panel = async (file: string, title: string, of: Readonly<Record<string, string>>) => {
      const [{ expr } = { expr: '' }] = panelQueries(file, title)
      const samples = await prometheus.query(fillVariables(file, expr))
      const fits = samples.filter(({ metric }) =>
        Object.entries(of).every(([label, value]) => metric[label] === value),
      )
      return fits.map(({ value }) => value)
    }
    await until('all is scraped', async () => (await prometheus.query('up == 1')).length === 4)

    await t.test('NATS is away', async (t) => {
      const router = { namespace: NAMESPACE, pod: 'router-0' }
      t.same(await panel('nats.json', 'Connected', router), [1])
      t.same(await firing('TuttiNatsAway'), [])
      served.proxy.refuse()
      served.proxy.cut()
      const { annotations } = await fires('TuttiNatsAway', router)
      t.equal(annotations['summary'], `The pod router-0 in ${NAMESPACE} is not connected to NATS.`)
      t.same(await panel('nats.json', 'Connected', router), [0])
      t.same(await panel('tutti.json', 'Processes without NATS', { namespace: NAMESPACE }), [1])
      await fires('TuttiNoRouterReady', { namespace: NAMESPACE })
      t.same(await panel('router.json', 'Ready', router), [0])
      served.proxy.accept()
      await Promise.all([resolves('TuttiNatsAway'), resolves('TuttiNoRouterReady')])
      t.same(await panel('nats.json', 'Connected', router), [1])
      t.same(await panel('router.json', 'Ready', router), [1])
    })

    await t.test('a model fails', async (t) => {
      const client = openClient(t, served.router)
      const failing = { modelName: 'fail_at_run', inputs: [fp32('x', [7, 7, 7])] }
      const isOver = new AbortController()
      const load = (async () => {
        while (!isOver.signal.aborted) await client.infer(failing).catch(() => {})
      })()
      t.teardown(() => isOver.abort())
      const model = { namespace: NAMESPACE, model: 'fail_at_run' }
      await fires('TuttiModelFails', model)
      const backend = { ...model, reason: 'BACKEND' }
      const [rate = 0] = await panel('model.json', 'Requests that failed, by reason', backend)
      t.ok(rate > 0, `${rate} a second`)
      isOver.abort()
      await load
      await resolves('TuttiModelFails')
    })

    await t.test('a Model is not ready', async (t) => {
      const adder = { kind: 'Model', resource_namespace: NAMESPACE, name: 'adder' }
      const { annotations } = await fires('TuttiResourceNotReady', adder)
      t.match(annotations['summary'], /^The Model adder in team-a is not ready \(\w+\)\.$/)
      const [notReady = 0] = await panel('operator.json', 'Models by their condition Ready', {
        ready: 'False',
      })
      t.equal(notReady, 1)
      await operator.remove()
      await resolves('TuttiResourceNotReady')
    })
  },
)
