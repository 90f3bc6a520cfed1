import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { loadCommands } from '@tutti/command-line/program'
import { KUBECTL_PROGRAM } from '@tutti/kubectl'
import { deployment, routerPod, runKubectlCommand, startListServer } from '@tutti/kubectl/testing'
import { serveBytes, startArtifactServer, tarArchive } from '@tutti/repository/testing'
import t, { type Test } from 'tap'
import { COMMANDS } from './commands.ts'
import { buildResultSchemas } from './result-schemas.ts'
import { ECHO_CHAIN, echo, serveEcho } from './testing/echo-server.ts'
import { openResultSchemas } from './testing/result-schemas.ts'
import { runCommand } from './testing/run-command.ts'

/*
 * Every command that prints results, run for JSON, against the committed schema of its results. A new command needs its `result`
 * (command.ts), a line in RUNS with what makes it print one, and `npm run gen`.
 */

t.setTimeout(120_000)

const BASIC = join(import.meta.dirname, '../../../model_repository/.variants/fixtures/basic')
const MODELS = {
  numbers: echo('FP32', [3], 'max_batch_size: 8'),
  texts: echo('STRING', [-1], 'max_batch_size: 8'),
  stream: echo('INT32', [1], 'model_transaction_policy { decoupled: true }'),
  failing: echo('INT32', [1], 'parameters { key: "fails" value { string_value: "yes" } }'),
  chain: ECHO_CHAIN,
}
const MANIFESTS = `apiVersion: tutti.dev/v1alpha1
kind: Model
metadata: { name: good }
spec: { modelFormat: { name: onnx }, storageUri: pvc://models/good }
---
apiVersion: tutti.dev/v1alpha1
kind: Ensemble
metadata: { name: waiting }
spec:
  inputs: [{ name: x, datatype: FP32, shape: [1] }]
  outputs: [{ name: y, datatype: FP32, shape: [1], from: a.y }]
  steps: [{ name: a, modelRef: { name: unknown }, inputs: { x: x } }]
---
apiVersion: tutti.dev/v1alpha1
kind: Model
metadata: { name: bad }
spec: { modelFormat: { name: onnx }, storageUrl: 5 }
---
kind: nothing
`

/** They serve, do something and say so, or print what is for a shell. */
const WITHOUT_RESULTS = ['serve', 'step', 'router', 'completion', 'kubectl-logs']

/** They take the flags of `tutti infer`, whose `--output` names files. */
const OF_INFER = ['infer', 'bench', 'trace']

type Run = (t: Test) => Promise<readonly (readonly string[])[]>

/** The arguments with which each command is called to print results, without `--format`. */
const RUNS: Readonly<Record<string, Run>> = {
  config: async () => [
    ['add_one_matrix', `--model-repository=${BASIC}`],
    ['ens_chain', `--model-repository=${BASIC}`],
  ],
  infer: async (t) => {
    const folder = t.testdir()
    const { grpc, rest } = await serveEcho(t, MODELS, [], folder)
    const out = join(folder, 'out.npy')
    return [
      ['numbers', '-i=a=b=[1,2.5,-3]', `--url=${grpc}`],
      ['numbers', '-i=a=b=[1,2.5,-3]', `--url=${rest}`, `--output=out=${out}`],
      ['texts', '-i=a=b=["x"]', `--url=${rest}`],
      ['stream', '-i=a=b=5', `--url=${grpc}`],
    ]
  },
  bench: async (t) => {
    const { grpc } = await serveEcho(t, MODELS)
    const short = [`--url=${grpc}`, '--duration=1', '--warm-up=0']
    return [
      ['numbers', '-i=a=b=[1,2,3]', ...short],
      ['failing', ...short, '--rate=20'],
    ]
  },
  top: async (t) => {
    const { metrics } = await serveEcho(t, MODELS)
    return [[`--url=${metrics}`]]
  },
  trace: async (t) => {
    const { grpc } = await serveEcho(t, MODELS)
    return [
      ['chain', '-i=x=[1,2,3]', `--url=${grpc}`],
      ['numbers', '-i=a=b=[1,2,3]', `--url=${grpc}`],
    ]
  },
  validate: async (t) => {
    const file = join(t.testdir({ 'm.yaml': MANIFESTS }), 'm.yaml')
    return [
      ['-f', file],
      ['-f', file, `--model-repository=${BASIC}`],
    ]
  },
  explain: async () => [
    ['ens_branch_join', `--model-repository=${BASIC}`],
    ['ens_nested', `--model-repository=${BASIC}`],
  ],
  import: async (t) => {
    const folder = t.testdir({ torn: { 'config.pbtxt': 'name: ', 1: {} } })
    return [
      ['triton', BASIC],
      ['triton', BASIC, `--output-dir=${join(folder, 'out')}`],
      ['triton', folder],
    ]
  },
  doctor: async (t) => {
    const folder = t.testdir({ torn: { 'config.pbtxt': 'name: "', 1: {} } })
    const ports = ['grpc', 'http', 'metrics'].map((name) => `--${name}-port=0`)
    return [ports, [...ports, `--model-repository=${folder}`, '--http-port=1']]
  },
  fetch: async (t) => {
    const archive = tarArchive([{ name: 'config.pbtxt', data: 'backend: "b"' }])
    const server = await startArtifactServer(serveBytes(archive, '"v1"'))
    t.teardown(() => server.close())
    const to = join(t.testdir(), 'model')
    const fetched = [`--uri=${server.origin}/m.tar`, `--to=${to}`]
    return [fetched, fetched, [`--verify=${to}`]]
  },
  'kubectl-doctor': async (t) => [[`--kubeconfig=${await startListServer(t)}`]],
  'kubectl-explain': async (t) => [['ens', `--kubeconfig=${await startListServer(t)}`]],
  'kubectl-trace': async (t) => {
    const { grpc } = await serveEcho(t, { ...MODELS, ens: ECHO_CHAIN, slow: MODELS.numbers })
    const items = { pods: [routerPod('tutti-router-x', 'True')] }
    const ports = { 8001: Number(new URL(grpc).port) }
    const kubeconfig = `--kubeconfig=${await startListServer(t, { items, ports })}`
    return [
      ['ens', '-i=x=[1,2,3]', kubeconfig],
      ['model/slow', '-i=a=b=[1,2,3]', kubeconfig],
    ]
  },
  'kubectl-restart': async (t) => {
    const labels = { 'app.kubernetes.io/component': 'step', 'tutti.dev/model': 'slow' }
    const items = { deployments: [deployment('slow-step', labels, {})] }
    const kubeconfig = `--kubeconfig=${await startListServer(t, { items })}`
    return [
      ['ens', kubeconfig, '--timeout=1ms'],
      ['slow', kubeconfig, '--no-wait'],
    ]
  },
  'kubectl-status': async (t) => [[`--kubeconfig=${await startListServer(t)}`]],
}

const ALL = [
  ...(await loadCommands(COMMANDS)).map((command) => ({
    command,
    file: command.name,
    run: runCommand,
  })),
  ...(await loadCommands(KUBECTL_PROGRAM.commands)).map((command) => ({
    command,
    file: `kubectl-${command.name}`,
    run: runKubectlCommand,
  })),
]
const WITH_RESULTS = ALL.filter(({ command }) => command.result !== undefined)
const schemas = openResultSchemas()

await t.test('the schemas are those that are generated; npm run gen writes them', async (t) => {
  const built = [...(await buildResultSchemas()).keys()]
  t.same(
    built,
    [...WITH_RESULTS.map(({ file }) => file), 'error'].map((name) => `schemas/cli-${name}.json`),
  )
  for (const name of [...WITH_RESULTS.map(({ file }) => file), 'error']) {
    t.not(schemas.problemsOf(name, undefined).length, 0, `${name} takes not everything`)
  }
})

await t.test('a command prints results with a schema, or none', (t) => {
  const without = ALL.filter(({ command }) => command.result === undefined)
  t.same(
    without.map(({ file }) => file),
    WITHOUT_RESULTS,
  )
  for (const { command, file } of without) t.notOk('format' in command.flags, file)
  for (const { command, file } of WITH_RESULTS) {
    const { format } = command.flags
    const names = format?.aliases ?? []
    t.ok(format?.type === 'enum' && format.values.includes('json'), file)
    t.equal(names.includes('output'), !OF_INFER.includes(file), `${file} --output`)
    if (file.startsWith('kubectl-')) t.ok(names.includes('o'), file)
  }
  t.same(Object.keys(RUNS).toSorted(), WITH_RESULTS.map(({ file }) => file).toSorted())
  t.end()
})

for (const { command, file, run } of WITH_RESULTS) {
  await t.test(`${file} prints what its schema says`, async (t) => {
    for (const argv of (await RUNS[file]?.(t)) ?? []) {
      const { out, err } = await run([command.name, ...argv, '--format=json'])
      const line = argv.join(' ')
      t.notMatch(err, '{"error"', line)
      for (const result of readResults(out)) t.same(schemas.problemsOf(file, result), [], line)
    }
  })
}

/** One value, or one in each line. @throws Error for none. */
function readResults(out: string): readonly unknown[] {
  try {
    return [JSON.parse(out)]
  } catch {
    return out
      .trimEnd()
      .split('\n')
      .map((line): unknown => JSON.parse(line))
  }
}

await t.test('errors are JSON where results are, whatever is wrong with the line', async (t) => {
  for (const { command, file, run } of WITH_RESULTS) {
    const names = ['format', ...(command.flags['format']?.aliases ?? [])]
    for (const name of names) {
      const flag = name.length === 1 ? `-${name}` : `--${name}`
      const { code, out, err } = await run([command.name, '--no-such-flag', flag, 'json'])
      t.match({ code, out }, { code: 2, out: '' }, `${file} ${flag}`)
      t.match(err, /^\{.*\}\n$/, `${file} ${flag}`)
      const told: unknown = JSON.parse(err)
      t.same(schemas.problemsOf('error', told), [])
      t.match(told, { error: { reason: 'FLAG_INVALID', message: /unknown flag --no-such-flag/ } })
    }
    const text = await run([command.name, '--no-such-flag'])
    t.match(text.err, /^(kubectl )?tutti [a-z]+: unknown flag/, file)
  }
  const folder = t.testdir()
  const missing = await runCommand([
    'config',
    'none',
    `--model-repository=${BASIC}`,
    '--format=json',
  ])
  t.equal(missing.code, 1)
  t.match(JSON.parse(missing.err), {
    error: { reason: 'MODEL_NOT_FOUND', help: 'https://tutti.dev/docs/errors/#model_not_found' },
  })
  await mkdir(join(folder, 'there'))
  await writeFile(join(folder, 'there', 'x'), '')
  const argv = ['--uri=http://127.0.0.1:1/m.tar', `--to=${folder}/there`, '--output=json']
  const unstored = await runCommand(['fetch', ...argv])
  t.equal(unstored.code, 17)
  t.match(JSON.parse(unstored.err), { error: { reason: 'ARTIFACT_NOT_STORED' } })
})

await t.test('what an output cannot be written to is an error beside the result', async (t) => {
  const folder = t.testdir()
  const { grpc } = await serveEcho(t, MODELS, [], folder)
  const argv = ['numbers', '-i=a=b=[1,2,3]', `--url=${grpc}`, `--output=out=${folder}/no/x.npy`]
  const { code, out, err } = await runCommand(['infer', ...argv, '--format=json'])
  t.equal(code, 1)
  t.same(schemas.problemsOf('infer', JSON.parse(out)), [])
  t.same(schemas.problemsOf('error', JSON.parse(err)), [])
})

await t.test('an error of an API server is JSON too, without a page of Tutti', async (t) => {
  const kubeconfig = await startListServer(t, { status: 401 })
  const argv = ['status', `--kubeconfig=${kubeconfig}`, '-o', 'json']
  const { code, err } = await runKubectlCommand(argv)
  t.equal(code, 1)
  const told: { readonly error: object } = JSON.parse(err)
  t.same(schemas.problemsOf('error', told), [])
  t.match(told, { error: { reason: 'UNAUTHENTICATED', message: 'Unauthorized' } })
  t.notOk('help' in told.error)
})
