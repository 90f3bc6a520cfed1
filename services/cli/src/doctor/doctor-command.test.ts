// needs: python
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { env } from 'node:process'
import type { Finding } from '@tutti/command-line/results'
import t, { type Test } from 'tap'
import { runCommand } from '../testing/run-command.ts'
import { checkEngineFor, checkGpu, checkNode } from './machine-checks.ts'

t.setTimeout(120_000)
const PYTHON = env['TUTTI_TEST_PYTHON'] ?? ''
const WITHOUT_PYTHON = PYTHON === '' && 'TUTTI_TEST_PYTHON is not set'
const FREE = ['grpc', 'http', 'metrics'].map((name) => `--${name}-port=0`)
const PORTS =
  'input { name: "x" data_type: TYPE_FP32 dims: 1 } output { name: "y" data_type: TYPE_FP32 dims: 1 }'

async function temporaryFolder(t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tutti-doctor-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** A repository of models, each with a configuration and, if it is named, a file. */
async function writeModels(t: Test, models: Readonly<Record<string, readonly [string, string?]>>) {
  const repository = await temporaryFolder(t)
  for (const [name, [config, file]] of Object.entries(models)) {
    await mkdir(join(repository, name, '1'), { recursive: true })
    if (config !== '') await writeFile(join(repository, name, 'config.pbtxt'), config)
    if (file !== undefined) await writeFile(join(repository, name, '1', file), '')
  }
  return repository
}

const devices = (count: number) => ({
  accelerator: undefined,
  cuda: () => Promise.resolve({ count, found: `CUDA devices: ${count}` }),
  any: () => Promise.reject(new Error('not asked')),
})

async function examine(...argv: readonly string[]) {
  const { code, out, err } = await runCommand(['doctor', '--format=json', ...FREE, ...argv])
  if (out === '') throw new Error(err)
  const { ok, findings } = JSON.parse(out) as { ok: boolean; findings: readonly Finding[] }
  const of = (check: string) => findings.filter((finding) => finding.check === check)
  return { code, ok, of, findings }
}

/** An interpreter without packages. */
async function bare(t: Test): Promise<string> {
  const path = join(await temporaryFolder(t), 'bare')
  await writeFile(path, `#!/bin/sh\nexec ${PYTHON} -S -I "$@"\n`)
  await chmod(path, 0o755)
  return path
}

/** As with `--python auto`, which finds nothing else. */
const checkForAuto = (candidate: string) =>
  checkEngineFor('python', ['py'], { interpreters: [candidate], makesEnvironment: true })

await t.test(
  'what no model needs is a note, and nothing is missing',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const { code, ok, of } = await examine(`--python=${await bare(t)}`)
    t.equal(code, 0)
    t.equal(ok, true)
    t.match(of('node'), [{ status: 'ok', found: `Node ${process.versions.node}` }])
    t.match(of('onnxruntime'), [{ status: 'ok' }])
    t.match(of('python'), [{ status: 'note', found: /cannot import numpy/ }])
    t.match(of('shared memory')[0], { status: 'ok' })
    t.same(of('port'), [])
  },
)

await t.test(
  'what models need is missing, with their names and what to do',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const own = 'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "/x" } }'
    const repository = await writeModels(t, {
      py: [`backend: "python" ${PORTS}`, 'model.py'],
      'no-config': ['', 'model.py'],
      brings: [`backend: "python" ${PORTS} ${own}`, 'model.py'],
      ts: [`platform: "pytorch_libtorch" ${PORTS}`, 'model.pt'],
      net: ['', 'model.onnx'],
      gpu: [
        `platform: "onnxruntime_onnx" ${PORTS} instance_group { kind: KIND_GPU }`,
        'model.onnx',
      ],
      trt: [`platform: "tensorrt_plan" ${PORTS}`, 'model.plan'],
      broken: ['max_batch_size: "', 'model.onnx'],
      ens: [
        `platform: "ensemble" ${PORTS} ensemble_scheduling { step { model_name: "py" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } } }`,
      ],
    })
    const lacking = await examine(`--model-repository=${repository}`, `--python=${await bare(t)}`)
    t.equal(lacking.code, 1)
    t.equal(lacking.ok, false)
    t.match(lacking.of('python'), [
      {
        status: 'missing',
        neededBy: ['no-config', 'py'],
        mending: /--python auto.*apt-get install python3-numpy/,
      },
    ])
    t.match(lacking.of('pytorch'), [
      { status: 'missing', neededBy: ['ts'], mending: /python3-torch/ },
    ])
    t.same(
      lacking.of('model').map(({ neededBy }) => neededBy),
      [['broken'], ['trt']],
    )
    t.match(lacking.of('model')[1]?.found, /unable to find backend library for backend 'tensorrt'/)
    const there = await examine(
      `--model-repository=${repository}`,
      `--backend-config=python,interpreter=${PYTHON}`,
    )
    t.match(there.of('python'), [{ status: 'ok', found: /Python 3\.\d+.*, NumPy \d/ }])
    const auto = ['--python=auto', `--backend-config=python,interpreter=${PYTHON}`]
    t.match((await examine(...auto)).of('python'), [{ status: 'ok' }])
  },
)

await t.test(
  'with auto an environment is promised only where a Python can make one',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    t.match(await checkForAuto('/nowhere/python3'), {
      status: 'missing',
      neededBy: ['py'],
      mending: /^install Python/,
    })
    t.match(await checkForAuto(await bare(t)), { status: 'note', mending: /makes an environment/ })
  },
)

await t.test('a port that is taken is a note, one of no address here is missing', async (t) => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const argv = [`--http-port=${port}`, '--http-address=127.0.0.1']
  const { code, of } = await examine(...argv)
  t.equal(code, 0)
  t.match(of('port'), [
    {
      status: 'note',
      found: `127.0.0.1:${port} of http is taken`,
      mending: /another server has it, perhaps Tutti itself: .*--http-port/,
    },
  ])
  const away = await examine(`--http-port=${port}`, '--http-address=192.0.2.1')
  t.equal(away.code, 1)
  t.match(away.of('port'), [{ status: 'missing', mending: /--http-address/ }])
  server.close()
  await new Promise((resolve) => server.once('close', resolve))
  t.match((await examine(...argv)).of('port'), [{ status: 'ok' }])
})

await t.test('Node and the driver are told as they are', async (t) => {
  t.match(checkNode('22.1.0'), { status: 'missing', mending: /Node 24/ })
  t.match(await checkGpu(['net'], {}, devices(2)), { status: 'ok', found: 'CUDA devices: 2' })
  t.match(await checkGpu(['net'], {}, devices(0)), { status: 'missing', mending: /--gpus all/ })
  t.match(await checkGpu([], {}, devices(0)), { status: 'note' })
})

await t.test(
  'the text has a line for each, and what to do below it',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const repository = await writeModels(t, { py: [`backend: "python" ${PORTS}`, 'model.py'] })
    const argv = [`--model-repository=${repository}`, `--python=${await bare(t)}`, ...FREE]
    const { code, out } = await runCommand(['doctor', ...argv])
    t.equal(code, 1)
    t.match(out, /^ok {7}node: Node \d/m)
    t.match(
      out,
      /^missing {2}python: '\S+bare': it cannot import numpy .* \(for py\)\n {9}-> serve with --python auto/m,
    )
    t.match(out, /\n1 thing is missing\n$/)
  },
)

await t.test('what is not understood ends with 2', async (t) => {
  const cases = [
    [['now'], /got 'now', want flags only/],
    [['--model-repository=/nowhere'], /--model-repository: .*\/nowhere/],
    [['--python='], /--python: got an empty text/],
  ] as const
  for (const [argv, err] of cases) t.match(await runCommand(['doctor', ...argv]), { code: 2, err })
})
