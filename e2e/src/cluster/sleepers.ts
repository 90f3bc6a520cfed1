import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { PlainObject } from '@tutti/kube/testing'
import { InferenceClient } from '@tutti/protocol/client'
import type { Test } from 'tap'
import { fp32, toFloats } from '../tensors.ts'
import { publicFolder } from './claim.ts'
import { openWorkloads } from './workloads.ts'

/** The namespace of all of them. */
export const SPACE = 'zero'
/** Their input and output. */
export const TENSOR = { datatype: 'FP32', shape: [1] }

/** A Model by what it adds, and the seconds for which it loads. */
interface Sleeper {
  readonly adds: number
  readonly loadS: number
}

const CONFIG = `backend: "python"
max_batch_size: 0
input { name: "x" data_type: TYPE_FP32 dims: 1 }
output { name: "y" data_type: TYPE_FP32 dims: 1 }
`

const codeOf = ({ adds, loadS }: Sleeper): string => `
import time
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        time.sleep(${loadS})

    def execute(self, requests):
        answers = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("y", x + ${adds})]))
        return answers
`

/** Writes Models that each add a number. @returns the folder, which has a folder for each by its name. */
export async function writeModels(
  t: Test,
  models: Readonly<Record<string, Sleeper>>,
): Promise<string> {
  const folder = await publicFolder(t)
  for (const [name, model] of Object.entries(models)) {
    await mkdir(join(folder, name, '1'), { recursive: true })
    await writeFile(join(folder, name, 'config.pbtxt'), CONFIG)
    await writeFile(join(folder, name, '1', 'model.py'), codeOf(model))
  }
  return folder
}

/** A Model of the claim `models` that sleeps soon. */
export const sleeper = (name: string): PlainObject => ({
  apiVersion: 'tutti.dev/v1alpha1',
  kind: 'Model',
  metadata: { namespace: SPACE, name },
  spec: {
    modelFormat: { name: 'python' },
    storageUri: `pvc://models/${name}`,
    scaling: { minReplicas: 0, idleAfter: '1s' },
    // Several of them start at once on the two cores of a small node.
    resources: { requests: { cpu: '100m', memory: '128Mi' } },
  },
})

/** Asks a Model or an Ensemble with a value. @returns the answer, and how long it took. */
type Ask = (
  modelName: string,
  value: number,
  timeoutMs?: number,
) => Promise<{ readonly sum: number; readonly ms: number }>

/** Opens one of the routers. */
export async function openRouter(t: Test): Promise<Ask> {
  const [router] = await openWorkloads(SPACE).pods('app.kubernetes.io/component=router')
  const client = new InferenceClient({ address: `${router?.['status'].podIP}:8001` })
  t.teardown(() => client.close())
  return async (modelName, value, timeoutMs) => {
    const before = performance.now()
    const request = { modelName, inputs: [fp32('x', [value])] }
    const { outputs } = await client.infer(request, timeoutMs === undefined ? {} : { timeoutMs })
    const [sum = Number.NaN] = outputs.flatMap((output) => [...toFloats(output)])
    return { sum, ms: performance.now() - before }
  }
}
