// needs: nats, python
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { inferPath } from '../rest-infer.ts'
import { serve, type Target } from '../serving.ts'
import { tempFolder } from '../temp-repository.ts'
import { PYTHON, PYTHON_FLAGS } from '../triton-client.ts'
import { SKIP, startHarness } from './harness.ts'
import { untilReady } from './seen.ts'

const skip = PYTHON === undefined ? 'TUTTI_TEST_PYTHON is not set' : SKIP

const PLUS_ONE = `import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "IN", "data_type": "TYPE_INT32", "dims": [-1]})
        config.add_output({"name": "OUT", "data_type": "TYPE_INT32", "dims": [-1]})
        return config

    def execute(self, requests):
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("OUT", request.inputs()[0].as_numpy() + 1)])
            for request in requests
        ]
`
const CONFIGS = {
  plus: 'backend: "plus_one"',
  same: `backend: "identity"
    input { name: "INPUT0" data_type: TYPE_INT32 dims: [-1] }
    output { name: "OUTPUT0" data_type: TYPE_INT32 dims: [-1] }`,
}
const MODELS = Object.keys(CONFIGS)

/** A repository, and the flags that name the backend of one of its models. */
async function writeFolders(t: Test) {
  const folder = await tempFolder(t)
  const backends = join(folder, 'backends')
  await mkdir(join(backends, 'plus_one'), { recursive: true })
  await writeFile(join(backends, 'plus_one', 'model.py'), PLUS_ONE)
  const repository = join(folder, 'models')
  for (const [model, config] of Object.entries(CONFIGS)) {
    await mkdir(join(repository, model, '1'), { recursive: true })
    await writeFile(join(repository, model, 'config.pbtxt'), config)
  }
  return {
    repositories: [repository],
    flags: [...PYTHON_FLAGS, `--backend-directory=${backends}`],
  }
}

async function check(t: Test, { httpPort }: Target): Promise<void> {
  for (const [model, name, want] of [
    ['plus', 'IN', { name: 'OUT', datatype: 'INT32', shape: [2], data: [5, 6] }],
    ['same', 'INPUT0', { name: 'OUTPUT0', datatype: 'INT32', shape: [2], data: [4, 5] }],
  ] as const) {
    const input = { name, datatype: 'INT32', shape: [2], data: [4, 5] }
    const answer = await fetch(`http://127.0.0.1:${httpPort}${inferPath(model)}`, {
      method: 'POST',
      body: JSON.stringify({ inputs: [input] }),
    })
    t.match(await answer.json(), { outputs: [want] }, model)
  }
}

await t.test('one process serves models of python-based backends', { skip }, async (t) => {
  await check(t, await serve(t, await writeFolders(t)))
})

await t.test('so does a step behind a router', { skip }, async (t) => {
  const { repositories, flags } = await writeFolders(t)
  const harness = await startHarness(t)
  const [router] = await Promise.all([
    harness.router({ repositories }),
    harness.step({ repositories, models: MODELS, flags }),
  ])
  await untilReady([router], MODELS)
  await check(t, router)
})
