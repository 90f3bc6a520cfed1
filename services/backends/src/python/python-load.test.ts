// needs: python

import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLogger } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import { instanceGroup } from '@tutti/model-config/testing'
import t from 'tap'
import { loadTimeout } from '../load-timeout.ts'
import { executeOnce } from '../testing/execute.ts'
import { stepRequest } from '../testing/model-source.ts'
import {
  answerWith,
  bytesRequestInput,
  loadPythonModel,
  type PythonTestOptions,
  pythonConfig,
  pythonModel,
  TEST_PYTHON,
  type Teardown,
  WITHOUT_PYTHON,
  writePythonModel,
} from '../testing/python-model.ts'
import { createPythonEngine } from './python-engine.ts'

/** The error of a load, as `CODE: text`. */
async function refusal(t: Teardown, code: string, o: PythonTestOptions = {}): Promise<string> {
  try {
    await loadPythonModel(t, code, o)
  } catch (error) {
    const { code: status, message, reason } = Object(error)
    return `${reason} ${status}: ${message}`
  }
  return 'loaded'
}

const initialize = (body: string) =>
  pythonModel(`${answerWith('x')}\n\ndef initialize(self, args):\n    ${body}`)

await t.test(
  'what keeps a model from loading is told with its traceback',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const cases = [
      [
        'import absent_module\n',
        /^MODEL_LOAD_FAILED INTERNAL: ModuleNotFoundError: No module named 'absent_module'\n\nAt:\n  \S+model.py\(1\): <module>\n\/\S+ lacks the module 'absent_module': install the package that brings it, or add its file to the model's folder if it is your own, or name .* --python PATH\. On Kubernetes, .*docs\/models\.md#images-and-packages\)\.\n$/,
      ],
      // As where it is not installed.
      [
        'import sys\nsys.modules.pop("PIL", 0)\nsys.path[:] = []\nsys.path_importer_cache.clear()\nimport PIL\n',
        /No module named 'PIL'\n\nAt:[^]+\/\S+ -m pip install pillow\), or /,
      ],
      ['import json.absent\n', /No module named 'json\.absent'\n\nAt:\n  \S+\(1\): <module>\n$/],
      ['raise ModuleNotFoundError("no")\n', /: no\n\nAt:\n  \S+\(1\): <module>\n$/],
      [
        'def x(:\n',
        /^MODEL_LOAD_FAILED INTERNAL: SyntaxError: invalid syntax \(model.py, line 1\)\n\nAt:\n  \S+model.py\(1\): <module>\n/,
      ],
      ['x = 1\n', /AttributeError: module '1.model' has no attribute 'TritonPythonModel'/],
      [pythonModel('pass'), /AttributeError: 'TritonPythonModel' has no function 'execute'/],
      [
        initialize('raise RuntimeError("no weights")'),
        /^MODEL_LOAD_FAILED INTERNAL: RuntimeError: no weights\n\nAt:\n  \S+model.py\(\d+\): initialize\n$/,
      ],
      [initialize('sys.exit(1)'), /SystemExit: 1\n\nAt:/],
      [
        initialize('os._exit(7)'),
        /ENGINE_STOPPED INTERNAL: Stub process 'm_0' is not healthy: it exited with status 7$/,
      ],
      [initialize('os.kill(os.getpid(), 11)'), /it was ended by SIGSEGV\n\nFatal Python error/],
    ] as const
    for (const [code, text] of cases) t.match(await refusal(t, code), text)
    t.equal(await refusal(t, pythonModel(answerWith('x'))), 'loaded')
  },
)

await t.test(
  'an import or initialize that hangs is ended when the time of its load is over',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    for (const code of [
      "import time\nprint('begun', flush=True)\ntime.sleep(600)\n",
      pythonModel(
        `def initialize(self, args):\n    print('begun', flush=True)\n    while True: pass\n\n${answerWith('x')}`,
      ),
    ]) {
      const late = new AbortController()
      const begun = Promise.withResolvers<void>()
      const info = (_: string, { line }: Readonly<Record<string, unknown>>): void => {
        if (line === 'begun') begun.resolve()
      }
      const text = refusal(t, code, {
        log: { ...silentLogger, info },
        load: { signal: late.signal },
      })
      await begun.promise
      late.abort(loadTimeout(90_000))
      t.equal(
        await text,
        "ENGINE_STOPPED INTERNAL: Stub process 'm_0' is not healthy: the model was not loaded after 90 s (timeouts.load)",
      )
    }
  },
)

await t.test('a load tells what it waits for', { skip: WITHOUT_PYTHON }, async (t) => {
  const told: string[] = []
  const load = { report: (doing: string) => told.push(doing) }
  await refusal(t, initialize('pass'), { load })
  await refusal(t, pythonModel(answerWith('x')), { load })
  const doing = ["import of the model's file by m_0", 'initialize of m_0']
  t.same(told, [...doing, ...doing.slice(0, 1)])
})

await t.test(
  'no limit of ours ends an import, an initialize or an auto_complete_config',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const clock = createManualClock()
    const gate = await mkdtemp(join(tmpdir(), 'tutti-gate-'))
    t.teardown(() => rm(gate, { recursive: true, force: true }))
    const wait = (name: string): string =>
      `wait(${JSON.stringify(join(gate, name))}, ${JSON.stringify(name)})`
    const code = pythonModel(
      `@staticmethod
def auto_complete_config(config):
    ${wait('complete')}
    return config

def initialize(self, args):
    ${wait('initialize')}

${answerWith('x')}`,
      `def wait(path, name):
    print(name, flush=True)
    while not os.path.exists(path):
        time.sleep(0.001)

${wait('import')}`,
    )
    const waiting: string[] = []
    const info = (_: string, { line }: Readonly<Record<string, unknown>>): void => {
      if (typeof line !== 'string') return
      waiting.push(line)
      clock.advance(86_400_000)
      void writeFile(join(gate, line), '')
    }
    const source = await writePythonModel(t, code)
    const log = { ...silentLogger, info }
    const engine = createPythonEngine({ interpreter: TEST_PYTHON ?? '', clock, log })
    await engine.complete?.(source)
    const model = await engine.load(source, { instances: 1 })
    t.teardown(() => model.close())
    t.same(waiting, ['import', 'complete', 'import', 'initialize'])
  },
)

await t.test(
  'a process that does not come to life is given up after stub-timeout-seconds',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const source = await writePythonModel(t, pythonModel(answerWith('x')))
    const { modelDirectory } = source
    // Python imports it at its start, so that what is forked from it stands still.
    await writeFile(
      join(modelDirectory, 'sitecustomize.py'),
      'import os, time\nos.register_at_fork(after_in_child=lambda: time.sleep(600))\n',
    )
    const interpreter = join(modelDirectory, 'python')
    const script = `#!/bin/sh\nPYTHONPATH='${modelDirectory}' exec ${TEST_PYTHON} "$@"\n`
    await writeFile(interpreter, script, { mode: 0o755 })
    const engine = createPythonEngine({ interpreter, settings: { startMs: 200 } })
    await t.rejects(engine.load(source, { instances: 1 }), {
      reason: 'ENGINE_STOPPED',
      message: 'the process of the model has not connected after 0.2 s (stub-timeout-seconds)',
    })
  },
)

await t.test(
  'a start after an end has the time of the load',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const clock = createManualClock()
    const again = Promise.withResolvers<void>()
    const late = Promise.withResolvers<unknown>()
    const info = (_: string, { line }: Readonly<Record<string, unknown>>) => {
      if (line === 'again') again.resolve()
    }
    const warn = (message: string, { problem }: Readonly<Record<string, unknown>>): void => {
      if (message === 'instance did not start') late.resolve(problem)
    }
    const code = pythonModel(`def initialize(self, args):
    mark = os.path.join(pb_utils.get_model_dir(), "started")
    if os.path.exists(mark):
        print("again", flush=True)
        time.sleep(10000)
    open(mark, "w").close()

def execute(self, requests):
    os._exit(1)`)
    const model = await loadPythonModel(t, code, {
      log: { ...silentLogger, info, warn },
      clock,
      settings: { restartFirstMs: 0 },
      load: { restartMs: 5000 },
    })
    await executeOnce(model, [stepRequest([bytesRequestInput(1)])])
    clock.advance(1)
    await again.promise
    clock.advance(5000)
    t.match(await late.promise, /: the model was not loaded after 5 s \(timeouts.load\)$/)
  },
)

await t.test(
  'an interpreter that cannot run models is told by name',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const source = await writePythonModel(t, pythonModel(answerWith('x')))
    const script = async (name: string, text: string) => {
      const path = join(source.modelDirectory, name)
      await writeFile(path, `#!/bin/sh\n${text}\n`)
      await chmod(path, 0o755)
      return path
    }
    const cases = [
      [
        '/nowhere/python3',
        /interpreter '\/nowhere\/python3' cannot be started \(spawn \S+ ENOENT\); want Python 3.9 or newer with NumPy on PATH, or named by tutti serve --python PATH /,
      ],
      [await script('silent', 'exit 0'), /silent' cannot run models: it ended without a message/],
      [
        await script('loud', 'echo no such luck >&2; exit 1'),
        /loud' cannot run models: no such luck/,
      ],
      [
        await script('bare', `exec ${TEST_PYTHON} -S -I "$@"`),
        /bare' cannot run models: Python 3\S+ cannot import numpy: ModuleNotFoundError/,
      ],
    ] as const
    for (const [interpreter, text] of cases) {
      await t.rejects(createPythonEngine({ interpreter }).load(source, { instances: 1 }), {
        reason: 'MODEL_LOAD_FAILED',
        message: text,
      })
    }
  },
)

await t.test(
  'a model file is looked for where the configuration says',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const load = async (filename: string) => {
      const config = pythonConfig({ default_model_filename: filename })
      const source = await writePythonModel(t, pythonModel(answerWith('x')), config)
      await writeFile(join(source.versionDirectory, 'other-name.py'), pythonModel(answerWith('x')))
      await rm(join(source.versionDirectory, 'model.py'))
      const model = await createPythonEngine({ interpreter: TEST_PYTHON ?? '' }).load(source, {
        instances: 1,
      })
      await model.close()
    }
    await load('other-name.py')
    await t.rejects(load(''), {
      reason: 'MODEL_LOAD_FAILED',
      message: /unable to load model 'm', there is no file '\S+1\/model.py'/,
    })
    await t.rejects(load('../x.py'), {
      message: /default_model_filename '..\/x.py' is outside the version directory/,
    })
  },
)

await t.test(
  'a model imports its neighbours, absolutely and relatively',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const source = await writePythonModel(
      t,
      pythonModel(
        answerWith('x'),
        'import beside\nfrom . import beside as again\nassert beside.N == again.N == 3\nimport above',
      ),
    )
    await writeFile(join(source.versionDirectory, 'beside.py'), 'N = 3\n')
    await writeFile(join(source.modelDirectory, 'above.py'), '')
    const model = await createPythonEngine({ interpreter: TEST_PYTHON ?? '' }).load(source, {
      instances: 1,
    })
    await model.close()
    t.pass('loaded')
  },
)

await t.test('a load that is not wanted any more ends', { skip: WITHOUT_PYTHON }, async (t) => {
  const code = pythonModel(`def initialize(self, args):
    if args["model_instance_name"].endswith("_1"):
        print("hangs", flush=True)
        time.sleep(10000)

${answerWith('x')}`)
  const config = pythonConfig({ instance_group: [instanceGroup({ count: 40 })] })
  const source = await writePythonModel(t, code, config)
  const hangs = Promise.withResolvers<void>()
  const info = (_: string, { line }: Readonly<Record<string, unknown>>): void => {
    if (line === 'hangs') hangs.resolve()
  }
  const engine = createPythonEngine({
    interpreter: TEST_PYTHON ?? '',
    log: { ...silentLogger, info },
  })
  const unwanted = new AbortController()
  const load = engine.load(source, { instances: 40, signal: unwanted.signal })
  await hangs.promise
  unwanted.abort(new Error('not wanted'))
  await t.rejects(load)
})

await t.test(
  'of several instances one that fails takes the others with it',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const code = pythonModel(`def initialize(self, args):
    if args["model_instance_name"].endswith("_1"):
        raise RuntimeError("second")

${answerWith('x')}`)
    await t.rejects(loadPythonModel(t, code, { load: { instances: 3 } }), {
      message: /RuntimeError: second/,
    })
  },
)

await t.test(
  'a model that hangs while it is started again is closed at once',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const again = Promise.withResolvers<void>()
    const info = (_: string, { line }: Readonly<Record<string, unknown>>) => {
      if (line === 'again') again.resolve()
    }
    const model = await loadPythonModel(
      t,
      pythonModel(`def initialize(self, args):
    mark = os.path.join(pb_utils.get_model_dir(), "started")
    if os.path.exists(mark):
        print("again", flush=True)
        time.sleep(10000)
    open(mark, "w").close()

def execute(self, requests):
    os._exit(1)`),
      {
        log: { ...silentLogger, info },
        settings: { restartFirstMs: 0 },
      },
    )
    await executeOnce(model, [stepRequest([bytesRequestInput(1)])])
    await again.promise
    await model.close()
  },
)

await t.test(
  'an instance keeps to the CPUs of its host policy',
  { skip: WITHOUT_PYTHON || (process.platform !== 'linux' && 'Linux alone has affinities') },
  async (t) => {
    const code = pythonModel(
      answerWith(
        'np.array(sorted(os.sched_getaffinity(0)) + [threading.active_count()], np.uint8)',
      ),
    )
    const cpusOf = async (hostPolicy: string) => {
      const config = pythonConfig({ instance_group: [instanceGroup({ host_policy: hostPolicy })] })
      const hostPolicies = new Map([['first', [0]]])
      const model = await loadPythonModel(t, code, { config, hostPolicies })
      const [response] = await executeOnce(model, [stepRequest([bytesRequestInput(1)])])
      return [...(response?.outputs[0]?.data ?? [])].slice(0, -1)
    }
    t.same(await cpusOf('first'), [0])
    t.not((await cpusOf('unknown')).length, 0)
    const nowhere = new Map([['cpu', [65_000]]])
    const text = await refusal(t, code, { hostPolicies: nowhere })
    t.match(text, /MODEL_LOAD_FAILED .*unable to set the CPUs of its host policy, \[65000\]: /)
  },
)
