// needs: python, torch
import { execFile } from 'node:child_process'
import { cp, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { restCall } from './rest-call.ts'
import { ROOT, serve } from './serving.ts'
import { tempFolder } from './temp-repository.ts'
import { PYTHON, runTritonChecks, TORCH_PYTHON, withoutTorch } from './triton-client.ts'

t.setTimeout(600_000)

const port = (name: string, type: string, dims: string): string =>
  `{ name: "${name}" data_type: ${type} dims: ${dims} }`

function configText(inputs: readonly string[], outputs: readonly string[], more = ''): string {
  return `platform: "pytorch_libtorch"
input [ ${inputs.join(', ')} ]
output [ ${outputs.join(', ')} ]
instance_group { kind: KIND_CPU }
${more}
`
}

const IMAGE = '[ 3, -1, -1 ]'
const LINE = '[ -1 ]'
const ARGUMENTS = [port('right', 'TYPE_FP32', LINE), port('left', 'TYPE_FP32', LINE)]
const CONFIGS: Readonly<Record<string, string>> = {
  traced: configText(
    [port('INPUT__0', 'TYPE_FP32', IMAGE)],
    [port('OUTPUT__0', 'TYPE_FP32', IMAGE)],
    'max_batch_size: 4',
  ),
  scripted: configText(ARGUMENTS, [
    port('sum__1', 'TYPE_FP32', LINE),
    port('difference__0', 'TYPE_FP32', LINE),
  ]),
  mistyped: configText(ARGUMENTS, [port('difference__0', 'TYPE_INT32', LINE)]),
  texts: configText(
    [port('INPUT__0', 'TYPE_STRING', LINE)],
    [port('OUTPUT__0', 'TYPE_STRING', LINE)],
  ),
}

/** A repository of small models, made by torch itself. */
async function makeRepository(t: Test): Promise<string> {
  const folder = await tempFolder(t)
  const script = `${ROOT}services/backends/src/testing/torchscript_models.py`
  await promisify(execFile)(TORCH_PYTHON ?? '', ['-B', script, folder])
  await cp(join(folder, 'scripted'), join(folder, 'mistyped'), { recursive: true })
  for (const [model, text] of Object.entries(CONFIGS)) {
    await writeFile(join(folder, model, 'config.pbtxt'), text)
  }
  return folder
}

await t.test('NVIDIA’s clients against TorchScript models', { skip: withoutTorch() }, async (t) => {
  const folder = await makeRepository(t)
  const flags = [`--backend-config=pytorch,interpreter=${TORCH_PYTHON}`]
  const serving = await serve(t, { repositories: [folder], flags })
  await runTritonChecks(t, 'torchscript.py', serving, [`--folder=${folder}`])
})

await t.test(
  'a TorchScript model is not ready where there is no PyTorch, and the index says why',
  { skip: PYTHON === undefined && 'TUTTI_TEST_PYTHON is not set' },
  async (t) => {
    const folder = await tempFolder(t)
    await mkdir(join(folder, 'texts', '1'), { recursive: true })
    await writeFile(join(folder, 'texts', '1', 'model.pt'), '')
    await writeFile(join(folder, 'texts', 'config.pbtxt'), CONFIGS['texts'] ?? '')
    const flags = [`--backend-config=python,interpreter=${PYTHON}`]
    const serving = await serve(t, { repositories: [folder], flags })
    const answer = await restCall(serving.httpPort, 'POST', '/v2/repository/index')
    t.match(answer.json(), [
      {
        name: 'texts',
        state: 'UNAVAILABLE',
        reason: /failed to load model 'texts': PyTorch cannot be imported by .*Install it there/,
      },
    ])
  },
)
