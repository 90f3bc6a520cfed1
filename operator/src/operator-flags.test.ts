import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseFlags, renderSettingTable, runExecutable } from '@tutti/chassis'
import t from 'tap'
import manifest from '../package.json' with { type: 'json' }
import { loadOperatorConfig, OperatorConfig } from './config.ts'
import { operatorExecutable } from './operator-executable.ts'
import { checkOperatorFlags, OPERATOR_FLAGS } from './operator-flags.ts'

const README = readFileSync(join(import.meta.dirname, '..', 'README.md'), 'utf8')

await t.test('the table of settings in the README is that of the code', async (t) => {
  t.ok(README.includes(renderSettingTable(OperatorConfig)), renderSettingTable(OperatorConfig))
})

const check = (...argv: string[]) => checkOperatorFlags(parseFlags(OPERATOR_FLAGS, argv).values)

await t.test('times of the election must fit one another', async (t) => {
  t.doesNotThrow(() => check())
  t.throws(
    () => check('--leader-elect-lease-duration=10'),
    /--leader-elect-lease-duration: 10 s, want more than the renew deadline, 10 s/,
  )
  t.throws(
    () => check('--leader-elect-retry-period=9'),
    /--leader-elect-renew-deadline: 10 s, want more than 1.2 times the retry period, 9 s/,
  )
})

await t.test('pods get no setting of metrics that they would not start with', async (t) => {
  for (const text of ['histogram_latencies=true', 'summary_quantiles=0.5:0.05,0.9:0.01'])
    t.doesNotThrow(() => check(`--metrics-config=${text}`))
  const wrong = ['0.5', ',0.5:0.05', '0.5:0.05,', '0.5:0.050.9:0.01'].map(
    (text) => `summary_quantiles=${text}`,
  )
  for (const text of ['x=1', 'histogram_latencies=maybe', '', ...wrong])
    t.throws(() => check(`--metrics-config=${text}`), /--metrics-config: got /)
})

await t.test('pods get no collector that they could not use', async (t) => {
  for (const ratio of ['0', '1', '0.25', '.5', '1e-05'])
    t.doesNotThrow(() => check('--otlp-endpoint=http://c:4318', `--otlp-sample-ratio=${ratio}`))
  for (const ratio of ['', '1.1', '-1', 'all', '.', 'Infinity'])
    t.throws(
      () => check('--otlp-endpoint=http://c:4318', `--otlp-sample-ratio=${ratio}`),
      /--otlp-sample-ratio: got .*, want a number from 0 to 1/,
    )
  for (const url of ['c:4318', 'grpc://c:4317', 'http://c:4318/v1/traces', 'http://c?x', ''])
    t.throws(() => check(`--otlp-endpoint=${url}`), /--otlp-endpoint: got .*want the base of OTLP/)
  for (const flag of ['--otlp-headers-secret=x', '--otlp-sample-ratio=0'])
    t.throws(() => check(flag), /--otlp-endpoint: got none, want the collector/)
})

await t.test('a cache has one place, and its bounds have one too', async (t) => {
  const bounds = ['--cache-namespace=a', '--cache-max-bytes=1']
  for (const place of ['--cache-claim=a', '--cache-host-path=/a'])
    t.doesNotThrow(() => check(place, ...bounds))
  t.throws(
    () => check('--cache-claim=a', '--cache-host-path=/a'),
    /--cache-claim: came with --cach/,
  )
  for (const flag of bounds)
    t.throws(() => check(flag), /--cache-claim: got none, want it or --cache-host-path/)
})

await t.test('the version is that of the package', async (t) => {
  let out = ''
  const environment = {
    env: {},
    out: (text: string) => (out += text),
    err: () => {},
    signals: { listen: () => () => {} },
    exit: () => {},
    onUnhandledRejection: () => {},
  }
  t.equal(await runExecutable(operatorExecutable(environment), ['--version'], environment), 0)
  t.equal(out, `tutti-operator ${manifest.version}\n`)
})

await t.test('the environment of a pod is enough', async (t) => {
  t.match(loadOperatorConfig({}), {
    podName: 'tutti-operator',
    podNamespace: 'tutti-system',
    serviceAccountDir: '/var/run/secrets/kubernetes.io/serviceaccount',
  })
  t.equal(loadOperatorConfig({ POD_NAMESPACE: 'x' }).podNamespace, 'x')
})
