// needs: python
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { env } from 'node:process'
import {
  createHealth,
  loadTracingSettings,
  parseFlags,
  silentLogger,
  systemClock,
} from '@tutti/chassis'
import t, { type Test } from 'tap'
import { runCommand } from '../testing/run-command.ts'
import { choosePython } from './choose-python.ts'
import { startServe } from './serve.ts'
import { SERVE_FLAGS } from './serve-flags.ts'

t.setTimeout(120_000)
const PYTHON = env['TUTTI_TEST_PYTHON'] ?? ''
const WITHOUT_PYTHON = PYTHON === '' && 'TUTTI_TEST_PYTHON is not set'
const MODEL = `import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", r.inputs()[0].as_numpy())]) for r in requests]
`
const CONFIG = `backend: "python" input { name: "x" data_type: TYPE_FP32 dims: 1 }
output { name: "y" data_type: TYPE_FP32 dims: 1 }`

function parse(...argv: readonly string[]) {
  return parseFlags(SERVE_FLAGS, argv).values
}

async function temporaryFolder(t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tutti-choose-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** The backends of a start with these flags. */
async function choose(t: Test, ...argv: readonly string[]) {
  const cache = await temporaryFolder(t)
  const common = { cache, path: env['PATH'], log: silentLogger, clock: systemClock }
  return await choosePython(parse(...argv), { ...common, signal: new AbortController().signal })
}

/** Finds the interpreter that the setting of a backend comes to. */
async function found(given: string | (() => Promise<string>) | undefined) {
  return typeof given === 'function' ? await given() : given
}

await t.test(
  'an interpreter that a flag names is checked at the start',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const folder = await temporaryFolder(t)
    const bare = join(folder, 'bare')
    await writeFile(bare, `#!/bin/sh\nexec ${PYTHON} -S -I "$@"\n`)
    await chmod(bare, 0o755)
    const refused = [
      [
        '/nowhere/python3',
        /--python: '\/nowhere\/python3' cannot run models: it does not run \(spawn/,
      ],
      [
        bare,
        /cannot run models: it cannot import numpy .*; want Python 3.9 or newer with NumPy, or auto/,
      ],
    ] as const
    for (const [path, message] of refused) {
      await t.rejects(choose(t, `--python=${path}`), { reason: 'FLAG_INVALID', message })
    }
    const misunderstood = [
      [['--python='], /--python: got an empty text/],
      [
        ['--python=a', '--backend-config=python,interpreter=b'],
        /got "a" with --backend-config=python,interpreter=b, want one/,
      ],
    ] as const
    for (const [argv, err] of misunderstood) {
      t.match(await runCommand(['serve', `--model-repository=${folder}`, ...argv]), {
        code: 2,
        err,
      })
    }
  },
)

await t.test(
  'the flag is for Python and TorchScript models',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const named = await choose(t, `--python=${PYTHON}`)
    t.equal(named.settings.get('python')?.interpreter, PYTHON)
    t.equal(named.settings.get('pytorch')?.interpreter, PYTHON)
    const other = '--backend-config=pytorch,interpreter=/other'
    const { settings } = await choose(t, `--python=${PYTHON}`, other)
    t.equal(settings.get('pytorch')?.interpreter, '/other')
    const none = await choose(t)
    t.equal(none.defaultMaxBatchSize, 4)
    t.same(none.settings.get('python')?.settings, {})
    t.notOk('interpreter' in (none.settings.get('python') ?? {}))
    const cached = { environmentCache: /^\S+tutti-choose-\S+\/environments$/ }
    for (const argv of [[], [`--python=${PYTHON}`], ['--python=auto']]) {
      const { settings: given } = await choose(t, ...argv)
      t.match(given.get('python'), cached)
      t.match(given.get('pytorch'), cached)
    }
  },
)

await t.test(
  'auto begins with the interpreter of --backend-config',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const interpreter = `--backend-config=python,interpreter=${PYTHON}`
    const { settings } = await choose(t, '--python=auto', interpreter)
    t.equal(await found(settings.get('python')?.interpreter), PYTHON)
  },
)

await t.test(
  'a server that is told auto serves Python models',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const repository = t.testdir({ echo: { 'config.pbtxt': CONFIG, 1: { 'model.py': MODEL } } })
    const argv = [
      `--model-repository=${repository}`,
      '--python=auto',
      `--backend-config=python,interpreter=${PYTHON}`,
      ...['http', 'grpc', 'metrics'].flatMap((name) => [
        `--${name}-port=0`,
        `--${name}-address=127.0.0.1`,
      ]),
      '--exit-on-error',
    ]
    const running = await startServe({
      flags: parse(...argv),
      backends: await choose(t, ...argv),
      settings: loadTracingSettings({}),
      log: silentLogger,
      health: createHealth(),
    })
    t.teardown(() => running.close())
  },
)
