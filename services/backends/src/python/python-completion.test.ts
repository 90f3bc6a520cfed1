// needs: python

import { execFile } from 'node:child_process'
import { appendFile, copyFile, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { silentLogger } from '@tutti/chassis'
import type { ModelConfig } from '@tutti/model-config'
import t, { type Test } from 'tap'
import { loadTimeout } from '../load-timeout.ts'
import { executeOnce } from '../testing/execute.ts'
import { modelConfig, stepRequest } from '../testing/model-source.ts'
import {
  answerWith,
  bytesRequestInput,
  pythonConfig,
  pythonModel,
  TEST_PYTHON,
  WITHOUT_PYTHON,
  writePythonModel,
} from '../testing/python-model.ts'
import { findEnvironment } from './environment.ts'
import { createPythonEngine } from './python-engine.ts'

const run = promisify(execFile)

async function complete(t: Test, methods: string, config: ModelConfig, signal?: AbortSignal) {
  const source = await writePythonModel(t, pythonModel(methods), config)
  const engine = createPythonEngine({ interpreter: TEST_PYTHON ?? '' })
  return await engine.complete?.(source, { ...(signal && { signal }) })
}

await t.test(
  'a model completes its configuration before it is initialized',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const bare = modelConfig([], [], { backend: 'python' })
    const completed = await complete(
      t,
      `@staticmethod
def auto_complete_config(config):
    pb_utils.Logger.log_info("completing")
    config.add_input({"name": "x", "data_type": "TYPE_FP32", "dims": [4], "optional": True})
    config.add_output({"name": "y", "data_type": "TYPE_STRING", "dims": [-1]})
    config.set_max_batch_size(8)
    config.set_dynamic_batching()
    config.set_model_transaction_policy({"decoupled": False})
    return config

def initialize(self, args):
    raise RuntimeError("not yet")`,
      bare,
    )
    t.match(completed, {
      name: 'm',
      max_batch_size: 8,
      input: [{ name: 'x', data_type: 'TYPE_FP32', dims: [4], optional: true }],
      output: [{ name: 'y', data_type: 'TYPE_STRING', dims: [-1] }],
      dynamic_batching: {},
      model_transaction_policy: { decoupled: false },
    })
    t.same(
      await complete(t, answerWith('x'), bare),
      bare,
      'a model without the function changes nothing',
    )
  },
)

const completing = (body: string) =>
  `@staticmethod\ndef auto_complete_config(config):\n    ${body}\n    return config`

await t.test(
  'what a model may not complete is told as its exception',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const config = pythonConfig({ max_batch_size: 8 })
    const cases = [
      [
        completing('config.set_max_batch_size(4)'),
        /^ValueError: configuration specified max_batch_size 8, but .* specified max_batch_size 4\n\nAt:\n[^]*auto_complete_config\n$/,
      ],
      [
        completing('return None'),
        /^auto_complete_config function in model 'm' must return a valid pb.ModelConfig object.$/,
      ],
      [completing('config.as_dict()["input"] = 7'), /^auto_complete_config of model 'm': .*input/],
      [
        completing('os._exit(2)'),
        /Stub process 'm_autocomplete' is not healthy: it exited with status 2$/,
      ],
    ] as const
    for (const [methods, text] of cases)
      await t.rejects(complete(t, methods, config), { message: text })
    const late = new AbortController()
    const completed = complete(t, completing('time.sleep(600)'), config, late.signal)
    late.abort(loadTimeout(90_000))
    await t.rejects(completed, {
      message:
        "Stub process 'm_autocomplete' is not healthy: the model was not loaded after 90 s (timeouts.load)",
    })
  },
)

/** A virtual environment that sees the NumPy of the test's Python, with a module of its own. */
async function makeEnvironment(directory: string): Promise<void> {
  await run(TEST_PYTHON ?? '', ['-m', 'venv', '--without-pip', directory])
  const { stdout } = await run(TEST_PYTHON ?? '', [
    '-c',
    'import numpy,os;print(os.path.dirname(os.path.dirname(numpy.__file__)))',
  ])
  const site = join(
    directory,
    'lib',
    (await readdir(join(directory, 'lib')))[0] ?? '',
    'site-packages',
  )
  await writeFile(join(site, 'numpy.pth'), stdout)
  await writeFile(join(site, 'only_here.py'), 'WHERE = "the environment"\n')
  await appendFile(join(directory, 'bin', 'activate'), '\nexport PACKAGE_VARIABLE=activated\n')
}

await t.test(
  'EXECUTION_ENV_PATH names a folder or an archive, which is unpacked once',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const base = await mkdtemp(join(tmpdir(), 'tutti-env-'))
    t.teardown(() => rm(base, { recursive: true, force: true }))
    const cache = join(base, 'cache')
    const code = pythonModel(
      answerWith(
        'np.frombuffer((only_here.WHERE + " " + os.environ["PACKAGE_VARIABLE"] + " " + os.environ["PATH"].split(":")[0]).encode(), np.uint8)',
      ),
      'import only_here',
    )
    const use = async (path: string) => {
      const source = await writePythonModel(
        t,
        code,
        pythonConfig({ parameters: { EXECUTION_ENV_PATH: { string_value: path } } }),
      )
      await mkdir(join(source.modelDirectory, 'env'), { recursive: true })
      await makeEnvironment(join(source.modelDirectory, 'env'))
      const engine = createPythonEngine({ environmentCache: cache })
      const model = await engine.load(source, { instances: 1 })
      const [response] = await executeOnce(model, [stepRequest([bytesRequestInput(1)])])
      await model.close()
      return Buffer.from(response?.outputs[0]?.data ?? []).toString()
    }
    t.match(
      await use('$$TRITON_MODEL_DIRECTORY/env'),
      /^the environment activated \S+\/m\/env\/bin$/,
    )
    const archive = join(base, 'packed.tar.gz')
    await makeEnvironment(join(base, 'packed'))
    await run('tar', ['-czf', archive, '-C', join(base, 'packed'), '.'])
    const two = await Promise.all([use(archive), use(archive)])
    t.match(two, [/^the environment activated \S+cache\/[0-9a-f]{64}-[0-9a-f]{12}\/bin$/, two[0]])
    t.equal(await use(archive), two[0], 'later loads use what is there')
    t.equal((await readdir(cache)).length, 2, 'one folder and its name')
    const broken = join(base, 'broken.tar.gz')
    await writeFile(broken, 'no archive')
    const empty = join(base, 'empty.tar.gz')
    await run('tar', ['-czf', empty, '-C', join(base, 'packed', 'bin'), '.'])
    for (const [path, text] of [
      ['/nowhere/env', /^Failed to get the canonical path for \/nowhere\/env\.$/],
      [base, /there is no bin\/python3 in it/],
      ['/dev/zero', /EXECUTION_ENV_PATH '\/dev\/zero': want a folder or an archive/],
      [broken, /EXECUTION_ENV_PATH '\S+broken.tar.gz': Command failed: tar/],
      [empty, /EXECUTION_ENV_PATH '\S+empty.tar.gz': there is no bin\/python3 in it/],
    ] as const) {
      await t.rejects(use(path), { reason: 'MODEL_LOAD_FAILED', message: text })
    }
    t.equal((await readdir(cache)).length, 2, 'nothing is left of those that cannot be used')
  },
)

await t.test(
  'parameters that concern the instances are read, others are the model’s',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const lines: unknown[] = []
    const log = {
      ...silentLogger,
      warn: (_: string, fields?: object) => void lines.push(fields),
    }
    const load = async (parameters: Readonly<Record<string, string>>) => {
      const entries = Object.entries(parameters).map(([name, string_value]) => [
        name,
        { string_value },
      ])
      const source = await writePythonModel(
        t,
        pythonModel(answerWith('x')),
        pythonConfig({ parameters: Object.fromEntries(entries) }),
      )
      const model = await createPythonEngine({ interpreter: TEST_PYTHON ?? '', log }).load(source, {
        instances: 1,
      })
      await model.close()
    }
    await load({ mine: 'x', SHM_DEFAULT_BYTE_SIZE: '65536', FORCE_CPU_ONLY_INPUT_TENSORS: 'yes' })
    t.same(lines, [])
    await load({ SHM_GROWTH_BYTE_SIZE: '1', FORCE_CPU_ONLY_INPUT_TENSORS: 'no' })
    t.match(lines, [{ settings: [/^SHM_GROWTH/, /^FORCE_CPU_ONLY/] }])
    lines.length = 0
    await load({ SHM_MAX_BYTE_SIZE: '0' })
    t.match(lines, [{ instance: 'm_0', problem: /^mmap of 0 bytes failed: errno/ }])
    await t.rejects(load({ SHM_DEFAULT_BYTE_SIZE: 'big' }), {
      message: /parameters\["SHM_DEFAULT_BYTE_SIZE"\]: got "big"/,
    })
    await t.rejects(load({ FORCE_CPU_ONLY_INPUT_TENSORS: 'maybe' }), {
      message: /got "maybe", want yes or no/,
    })
  },
)

await t.test('of several that unpack one environment at once the first counts', async (t) => {
  const base = await mkdtemp(join(tmpdir(), 'tutti-env-'))
  t.teardown(() => rm(base, { recursive: true, force: true }))
  await mkdir(join(base, 'packed', 'bin'), { recursive: true })
  await writeFile(join(base, 'packed', 'bin', 'python3'), '')
  // Only the contents are the same, as for several processes.
  const archives = ['one.tar', 'two.tar', 'three.tar'].map((name) => join(base, name))
  await run('tar', ['-cf', archives[0] ?? '', '-C', join(base, 'packed'), '.'])
  for (const copy of archives.slice(1)) await copyFile(archives[0] ?? '', copy)
  const cache = join(base, 'cache')
  const found = await Promise.all(
    archives.map((path) => {
      const parameters = { EXECUTION_ENV_PATH: { string_value: path } }
      return findEnvironment(pythonConfig({ parameters }), base, cache)
    }),
  )
  t.same(new Set(found.map((one) => one?.directory)).size, 1)
  t.equal((await readdir(cache)).length, 2, 'one folder and its name')
})
