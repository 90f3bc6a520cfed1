import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLogger, parseFlags, systemClock } from '@tutti/chassis'
import { serveBytes, startArtifactServer, tarArchive } from '@tutti/repository/testing'
import t, { type Test } from 'tap'
import { importTriton } from '../import/import-triton.ts'
import { renderManifest } from '../import/render-manifest.ts'
import { run } from '../run.ts'
import {
  IGNORED_ENSEMBLE_FIELDS,
  IGNORED_MODEL_FIELDS,
  IGNORED_STEP_FIELDS,
} from './ignored-fields.ts'
import { openManifests } from './open-manifests.ts'
import { SERVE_FLAGS } from './serve-flags.ts'
import { ask, model, serve } from './testing/serve-manifests.ts'

const ROOT = join(import.meta.dirname, '../../../..')
const BASIC = join(ROOT, 'model_repository/.variants/fixtures/basic')
const row = Array.from({ length: 16 }, (_, i) => i)

const ENSEMBLE = `
apiVersion: tutti.dev/v1alpha1
kind: Ensemble
metadata: {name: plus-two}
spec:
  modelName: plus_two.v1
  maxBatchSize: 8
  timeout: 30s
  maxInFlightRequests: 5
  inputs: [{name: X, datatype: FP32, shape: [16]}]
  outputs: [{name: "Y", from: second.Y}]
  steps:
    - {name: first, modelRef: {name: add_one_batch}, inputMap: {X: X}, hedge: {after: 50ms}, mayRunTwice: true}
    - {name: second, modelRef: {name: add_one_batch}, inputMap: {X: first.Y}}
`

async function infer(port: number, name: string): Promise<readonly [number, unknown]> {
  const inputs = [{ name: 'X', datatype: 'FP32', shape: [1, 16], data: row }]
  const [status, body] = await ask(port, `/v2/models/${name}/infer`, { inputs })
  return [status, Object(body).outputs?.[0].data ?? Object(body).error]
}

await t.test('Models and Ensembles are served from manifests', async (t) => {
  const manifests = [
    model(
      'add-one-batch',
      'pvc://fixtures/add_one_batch',
      '  instances: {count: 2}\n  batching: {maxQueueDelay: auto}\n  scaling: {minReplicas: 2, maxReplicas: 3}\n  timeouts: {load: 5m}',
    ),
    ENSEMBLE,
    model('identity-fp32', `hostPath://${BASIC}/identity_fp32`),
    'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}',
  ]
  const { port, metricsPort, messages } = await serve(t, manifests)
  t.same(await infer(port, 'plus_two.v1'), [200, row.map((x) => x + 2)])
  const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
  t.match(metrics, /^tutti_step_queue_delay_seconds\{model="add_one_batch",version="1"\} 0$/m)
  t.same(await infer(port, 'add_one_batch'), [200, row.map((x) => x + 1)])
  const [, index] = await ask(port, '/v2/repository/index', {})
  t.same(index, [
    { name: 'add_one_batch', version: '1', state: 'READY' },
    { name: 'identity_fp32', version: '1', state: 'READY' },
    { name: 'plus_two.v1', version: '1', state: 'READY' },
  ])
  const [, config] = await ask(port, '/v2/models/add_one_batch/config')
  t.match(config, { max_batch_size: 8, instance_group: [{ count: 2 }] })
  const idle = messages.filter(({ message }) => message.startsWith('fields without effect'))
  t.match(idle, [
    { fields: ['Model/add-one-batch: scaling, timeouts', 'Ensemble/plus-two: hedge'] },
  ])
  t.equal(idle.length, 1, 'once')
})

const SLOW = `
apiVersion: tutti.dev/v1alpha1
kind: Ensemble
metadata: {name: hurried}
spec:
  timeout: 1ms
  inputs: [{name: x, datatype: FP32, shape: [1]}, {name: rounds, datatype: INT64, shape: [1]}]
  outputs: [{name: result, from: first.y}]
  steps:
    - {name: first, modelRef: {name: slow}, inputMap: {x: x, rounds: rounds}}
`

await t.test('the rules of an Ensemble hold', async (t) => {
  const { port } = await serve(t, [model('slow', 'pvc://fixtures/slow'), SLOW])
  const inputs = [
    { name: 'x', datatype: 'FP32', shape: [1], data: [1] },
    { name: 'rounds', datatype: 'INT64', shape: [1], data: [1_000_000] },
  ]
  const [status, body] = await ask(port, '/v2/models/hurried/infer', { inputs })
  t.equal(status, 504)
  t.match(body, { error: "the ensemble's timeout of 1 ms exceeded" })
})

await t.test('archives are fetched once, and kept', async (t) => {
  const files = ['config.pbtxt', '1/model.onnx']
  const entries = await Promise.all(
    files.map(async (name) => ({ name, data: await readFile(join(BASIC, 'add_one_batch', name)) })),
  )
  const server = await startArtifactServer(serveBytes(tarArchive(entries), '"v1"'))
  t.teardown(() => server.close())
  const secret = t.testdir({ secret: { token: 'hidden' } })
  const cache = join(secret, 'cache')
  const withSecret = '  storage: {secretRef: {name: s}}'
  const one = model('add-one-batch', `${server.origin}/m.tar`, withSecret)
  const map = [`--secret-map=s=${secret}/secret`, `--model-cache=${cache}`]
  const { values: flags } = parseFlags(SERVE_FLAGS, ['-f=-', ...map])
  const lines: string[] = []
  const log = createLogger({ name: 'test', destination: { write: (line) => lines.push(line) } })
  const open = async () =>
    openManifests({
      flags,
      input: (async function* () {
        yield one
      })(),
      err: (text) => t.fail(text),
      cache,
      env: {},
      clock: systemClock,
      log,
      signal: new AbortController().signal,
    })
  const [{ path } = { path: '' }] = (await open()).directories
  t.same((await readdir(path)).toSorted(), ['1', 'config.pbtxt'])
  t.equal(server.heard[0]?.headers.authorization, 'Bearer hidden')
  await open()
  t.equal(server.heard[1]?.headers['if-none-match'], '"v1"')
  const told = lines.map((line) => JSON.parse(line))
  t.match(told, [{ message: 'transfer ended', uri: `${server.origin}/m.tar`, bytes: Number }])
  t.equal(told.length, 1, 'the second time nothing came')
})

async function command(t: Test, manifests: string, ...argv: string[]) {
  const folder = t.testdir({ 'm.yaml': manifests })
  const printed = { out: '', err: '' }
  const code = await run(['serve', `-f=${folder}/m.yaml`, ...argv], {
    env: { HOME: folder },
    out: (text) => (printed.out += text),
    err: (text) => (printed.err += text),
    signals: { listen: () => () => {} },
    exit: () => {},
  })
  return { code, ...printed }
}

await t.test('bad manifests end the start with the messages of tutti validate', async (t) => {
  const fixtures = `--storage-map=pvc://fixtures=${BASIC}`
  const good = model('add-one-batch', 'pvc://fixtures/add_one_batch')
  const cases: readonly (readonly [string, RegExp])[] = [
    [
      model('a', 'pvc://fixtures/x', '  nonsense: 1'),
      /m.yaml:9:\d+: Model\/a: spec.nonsense: there/,
    ],
    [
      `${good}\n---\n${ENSEMBLE.replace('first.Y', 'first.Z')}`,
      /Ensemble\/plus-two: steps\[1\]\(second\).*no output 'Z'/,
    ],
    [ENSEMBLE, /no Model or Ensemble serves 'add_one_batch'.*\(UnknownModel\)/],
    [`${good}\n---\n${good}`, /NameConflict/],
    [
      model('a', 'pvc://other/x'),
      /m.yaml:8:\d+: Model\/a: storageUri: 'pvc:\/\/other\/x' is not here, want --storage-map pvc:\/\/other=DIR/,
    ],
    [
      model('a', 'image://localhost:5000/models:1/x/y'),
      /Model\/a: storageUri: 'image:.*\/x\/y' is not here, want --storage-map image:\/\/localhost:5000\/models:1=DIR/,
    ],
    [
      model('a', 'pvc://fixtures/misspelt'),
      /Model\/a: storageUri: 'pvc:\/\/fixtures\/misspelt' is \/.*\/misspelt, which is no folder \(StorageUnavailable\)/,
    ],
    [
      model('a', 'https://localhost:1/a.tar', '  storage: {secretRef: {name: s}}'),
      /storage.secretRef: 's' is not here, want --secret-map s=DIR/,
    ],
    [
      model('a', 'pvc://fixtures/add_one', `  storage: {digest: "sha256:${'0'.repeat(64)}"}`),
      /storage.digest: '.*add_one' has sha256:/,
    ],
    [
      `${good}\n---\n${good.replace('{name: add-one-batch}', '{name: b, namespace: other}')}`,
      /metadata.namespace: got 'other', want 'default' as before it/,
    ],
  ]
  for (const [manifests, text] of cases) {
    const { code, err, out } = await command(t, manifests, fixtures)
    t.not(code, 0)
    t.match(`${err}${out}`, text)
  }
  t.match(
    await command(t, `${good}\n---\n${good.replace('{name:', '{namespace: "", name:')}`, fixtures),
    {
      err: /NameConflict/,
    },
  )
  t.match(await command(t, good, '--storage-map=x'), { code: 2, err: /want URI=DIR/ })
  t.match(await command(t, good, '--storage-map=image://x=y'), {
    code: 2,
    err: /want .*image:\/\/REPOSITORY:TAG\[\/PATH\]=DIR/,
  })
})

await t.test('Ensembles are checked by the configurations that will be served', async (t) => {
  const copy = await mkdtemp(join(tmpdir(), 'tutti-'))
  t.teardown(() => rm(copy, { recursive: true }))
  await cp(join(BASIC, 'add_one_batch'), copy, { recursive: true })
  const written = await readFile(join(copy, 'config.pbtxt'), 'utf8')
  await mkdir(join(copy, 'configs'))
  await writeFile(
    join(copy, 'configs/small.pbtxt'),
    written.replace(/max_batch_size: \d+/, 'max_batch_size: 4'),
  )
  const manifests = [model('add-one-batch', `hostPath://${copy}`), ENSEMBLE].join('\n---\n')
  t.match(await command(t, manifests, '--model-config-name=small'), {
    code: 1,
    err: /maxBatchSize: got 8, want at most 4: .*\(LimitExceeded\)/,
  })
})

/** Metadata and configuration. */
const read = async (port: number, name: string) => [
  await ask(port, `/v2/models/${name}`),
  await ask(port, `/v2/models/${name}/config`),
]

await t.test(
  'what has no config.pbtxt is served from its imported manifest as without it',
  async (t) => {
    const models = ['add_one_batch', 'identity_fp32_nonbatch', 'sum_batch']
    const repository = await mkdtemp(join(tmpdir(), 'tutti-'))
    t.teardown(() => rm(repository, { recursive: true }))
    for (const name of models) {
      await cp(join(BASIC, name, '1'), join(repository, name, '1'), { recursive: true })
    }
    const { manifests, problems } = await importTriton(repository, { forCpu: false })
    t.same(problems, [])
    const imported = await serve(t, manifests.map(renderManifest))
    const direct = await serve(t, [], `--model-repository=${repository}`)
    for (const name of models) {
      t.same(await read(imported.port, name), await read(direct.port, name), name)
    }
    const unbatched = model(
      'add-one-batch',
      `hostPath://${repository}/add_one_batch`,
      '  maxBatchSize: 0',
    )
    const { port } = await serve(t, [unbatched])
    t.match(await read(port, 'add_one_batch'), [
      [
        200,
        { inputs: [{ name: 'X', shape: [-1, 16] }], outputs: [{ name: 'Y', shape: [-1, 16] }] },
      ],
      [200, { max_batch_size: 0, input: [{ dims: ['-1', '16'] }] }],
    ])
    t.same(await infer(port, 'add_one_batch'), [200, row.map((x) => x + 1)])
  },
)

await t.test('flags about manifests want manifests', async (t) => {
  for (const flag of ['--storage-map=pvc://a=b', '--secret-map=a=b', '--model-cache=c']) {
    const printed = { err: '' }
    const code = await run(['serve', `--model-repository=${BASIC}`, flag], {
      env: {},
      out: () => {},
      err: (text) => (printed.err += text),
      signals: { listen: () => () => {} },
      exit: () => {},
    })
    t.equal(code, 2)
    t.match(printed.err, /--(storage-map|secret-map|model-cache): got it without --filename/)
  }
})

await t.test('what has no effect is documented', async (t) => {
  const page = await readFile(join(ROOT, 'docs/serving-manifests.md'), 'utf8')
  const ignored = [IGNORED_MODEL_FIELDS, IGNORED_ENSEMBLE_FIELDS, IGNORED_STEP_FIELDS]
  for (const field of ignored.flat()) {
    t.ok(page.includes(`\`${field}\``), field)
  }
})
