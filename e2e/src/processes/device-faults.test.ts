// needs: nats, python
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { restCall } from '../rest-call.ts'
import { inferPath } from '../rest-infer.ts'
import { ROOT, serve, type Target } from '../serving.ts'
import { tempFolder } from '../temp-repository.ts'
import { PYTHON, PYTHON_FLAGS } from '../triton-client.ts'
import { SKIP, startHarness } from './harness.ts'
import { isOk, logged, mark, untilReady } from './seen.ts'

t.setTimeout(300_000)

/** A step whose ONNX engine is scripted. */
const FAULTY_STEP = `${ROOT}services/step/dist/testing/faulty-step.js`

/** Ports, and a device that the model chooses: only what may use a device is watched. */
const PORTS = `instance_group { kind: KIND_MODEL }
input { name: "x" data_type: TYPE_UINT8 dims: 1 }
output { name: "y" data_type: TYPE_UINT8 dims: 1 }`

/** Writes a repository with a model of each name. */
async function writeModels(
  t: Test,
  models: Readonly<Record<string, { readonly config: string; readonly code?: string }>>,
): Promise<string> {
  const folder = await tempFolder(t)
  for (const [name, { config, code }] of Object.entries(models)) {
    await mkdir(join(folder, name, '1'), { recursive: true })
    await writeFile(join(folder, name, 'config.pbtxt'), `${config}\n${PORTS}`)
    await writeFile(
      join(folder, name, '1', code === undefined ? 'model.onnx' : 'model.py'),
      code ?? '',
    )
  }
  return folder
}

/** Asks a model for the answer to one byte. @returns the status of HTTP, and the error if there is one. */
async function ask(target: Target, model: string, byte: number) {
  const body = { inputs: [{ name: 'x', datatype: 'UINT8', shape: [1], data: [byte] }] }
  const answer = await restCall(target.httpPort, 'POST', inferPath(model), {
    body: Buffer.from(JSON.stringify(body)),
  })
  const { error = '' }: { readonly error?: string } = JSON.parse(answer.body.toString())
  return { status: answer.status, error }
}

/** Asks several times, one after the other. @returns the statuses. */
async function askAll(target: Target, model: string, bytes: readonly number[]) {
  const statuses: number[] = []
  for (const byte of bytes) statuses.push((await ask(target, model, byte)).status)
  return statuses
}

await t.test('a step whose device fails ends, and the others serve', { skip: SKIP }, async (t) => {
  const harness = await startHarness(t)
  const repository = await writeModels(t, { m: { config: 'backend: "onnxruntime"' } })
  const step = () => harness.step({ repositories: [repository], program: FAULTY_STEP })
  const [router, first, second] = await Promise.all([
    harness.router({ repositories: [repository], models: [] }),
    step(),
    step(),
  ])
  await untilReady([router], ['m'])
  const load = { isOver: false, statuses: [] as number[] }
  const clients = Array.from({ length: 4 }, async () => {
    while (!load.isOver) load.statuses.push((await ask(router, 'm', 1)).status)
  })
  const from = mark(first.process)
  t.equal((await ask(first, 'm', 255)).status, 500, 'the request that breaks the device')
  const lost = await logged(first.process, from, 'model cannot be executed by this process again')
  await logged(first.process, lost, 'the process must be replaced, stopping')
  t.same(await first.process.exited, { code: 70, signal: null })
  const before = load.statuses.length
  while (load.statuses.length < before + 20) await ask(router, 'm', 1)
  load.isOver = true
  await Promise.all(clients)
  const failed = load.statuses.filter((status) => status !== 200)
  t.same(failed, [500, 500], 'no other request fails than the three executions')
  t.same(await askAll(router, 'm', [1, 2, 3]), [200, 200, 200])
  t.equal(
    second.process.lines.some((line) => line.includes('the process must')),
    false,
  )
})

/** Raises PyTorch's text from the first 255 on, and as long as there is a file beside it. */
const TORCH = `import os
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.is_broken = False
        self.file = os.path.join(args["model_repository"], "lost")

    def execute(self, requests):
        answers = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
            self.is_broken = self.is_broken or x[0] == 255
            if self.is_broken or os.path.exists(self.file):
                raise RuntimeError("CUDA error: device-side assert triggered\\nCUDA kernel errors might be asynchronously reported")
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("y", x)]))
        return answers
`

const MODELS = { m: { config: 'backend: "python"', code: TORCH } }
const FLAGS = [...PYTHON_FLAGS]
const skip = PYTHON === undefined ? 'TUTTI_TEST_PYTHON is not set' : SKIP

await t.test('the process of a Python model is replaced, not the step', { skip }, async (t) => {
  const harness = await startHarness(t)
  const repository = await writeModels(t, MODELS)
  const [router, step] = await Promise.all([
    harness.router({ repositories: [repository], models: [] }),
    harness.step({ repositories: [repository], flags: FLAGS }),
  ])
  await untilReady([router], ['m'])
  const from = mark(step.process)
  t.same(await askAll(router, 'm', [1, 255, 2, 3, 4, 5]), [200, 500, 500, 500, 200, 200])
  await logged(step.process, from, 'instance is replaced, its device fails')

  await t.test('where a new process does not help, the step ends', async (t) => {
    const lost = mark(step.process)
    await writeFile(join(repository, 'm', 'lost'), '')
    const statuses = await askAll(router, 'm', [1, 2, 3, 4, 5, 6])
    t.same(statuses, [500, 500, 500, 500, 500, 500])
    await logged(step.process, lost, 'model cannot be executed by this process again')
    t.same(await step.process.exited, { code: 70, signal: null })
    t.not((await ask(router, 'm', 7)).status, 200)
  })
})

await t.test('one process goes on without the model', { skip }, async (t) => {
  const repository = await writeModels(t, { ...MODELS, other: MODELS.m })
  const flags = [...FLAGS, '--model-control-mode=explicit', '--load-model=*']
  const server = await serve(t, { repositories: [repository], flags })
  await writeFile(join(repository, 'm', 'lost'), '')
  const from = mark(server.process)
  t.same(await askAll(server, 'm', [1, 2, 3, 4, 5, 6]), [500, 500, 500, 500, 500, 500])
  await logged(server.process, from, 'model cannot be executed by this process again')
  t.equal(await isOk(`http://127.0.0.1:${server.httpPort}/v2/models/m/ready`), false)
  t.same(await askAll(server, 'other', [1, 2]), [200, 200])
  const index = await restCall(server.httpPort, 'POST', '/v2/repository/index', {
    body: Buffer.from('{}'),
  })
  const rows: readonly {
    readonly name: string
    readonly state: string
    readonly reason?: string
  }[] = JSON.parse(index.body.toString())
  const row = rows.find(({ name }) => name === 'm')
  t.equal(row?.state, 'UNAVAILABLE')
  t.match(row?.reason, /3 executions in a row .* CUDA error: device-side assert triggered/s)
  await rm(join(repository, 'm', 'lost'))
  const load = await restCall(server.httpPort, 'POST', '/v2/repository/models/m/load', {
    body: Buffer.from('{}'),
  })
  t.equal(load.status, 200, load.body.toString())
  t.same(await askAll(server, 'm', [1]), [200])
})
