import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { until } from '@tutti/chassis/testing'
import type { PlainObject } from '@tutti/kube/testing'
import { InferenceClient } from '@tutti/protocol/client'
import t, { type Test } from 'tap'
import { fp32, toFloats } from '../tensors.ts'
import { createClaim, publicFolder } from './claim.ts'
import { apply, createNamespace, getObject, kubectl, withoutTuttiImages } from './kubectl.ts'
import { openPlugin } from './kubectl-plugin.ts'
import { install, removeAfter } from './release.ts'
import { isEnding, openWorkloads } from './workloads.ts'

t.setTimeout(7_200_000)

const SPACE = 'zero'
const IN_SPACE = `--namespace=${SPACE}`
/** The Models: the number that each adds, and the seconds for which it loads. */
const MODELS = {
  two: { adds: 1, loadS: 2 },
  three: { adds: 10, loadS: 3 },
  four: { adds: 100, loadS: 4 },
} as const
const NAMES = Object.keys(MODELS)
/** A Model beside them, whose load is so long that one looks how far it is. */
const LONG = { adds: 1000, loadS: 45 } as const
const SUM = 111
/** Cycles of sleep and wake, half a minute each; TUTTI_ZERO_CYCLES=50 asks for more than a run of all tests has time for. */
const CYCLES = Number(process.env['TUTTI_ZERO_CYCLES'] ?? 1)
/** When requests are sent, from the end of the first pod on until the next ones serve. */
const MOMENTS_MS = Array.from({ length: 40 }, (_, i) => i * 200)
const PODS = 'tutti.dev/model,tutti.dev/model!=long'
const LOADS = /^its load: version 1, initialize of long_0$/
/** Deadline of a request that gives up before that load ends. */
const SHORT_MS = 5000
const TENSOR = { datatype: 'FP32', shape: [1] }

const CONFIG = `backend: "python"
max_batch_size: 0
input { name: "x" data_type: TYPE_FP32 dims: 1 }
output { name: "y" data_type: TYPE_FP32 dims: 1 }
`

const codeOf = ({ adds, loadS }: { readonly adds: number; readonly loadS: number }): string => `
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

async function writeModels(t: Test): Promise<string> {
  const folder = await publicFolder(t)
  for (const [name, model] of Object.entries({ ...MODELS, long: LONG })) {
    await mkdir(join(folder, name, '1'), { recursive: true })
    await writeFile(join(folder, name, 'config.pbtxt'), CONFIG)
    await writeFile(join(folder, name, '1', 'model.py'), codeOf(model))
  }
  return folder
}

const sleeper = (name: string): PlainObject => ({
  apiVersion: 'tutti.dev/v1alpha1',
  kind: 'Model',
  metadata: { namespace: SPACE, name },
  spec: {
    modelFormat: { name: 'python' },
    storageUri: `pvc://models/${name}`,
    scaling: { minReplicas: 0, idleAfter: '1s' },
    // Three of them start at once on the two cores of a small node.
    resources: { requests: { cpu: '100m', memory: '128Mi' } },
  },
})

const GRAPH: PlainObject = {
  apiVersion: 'tutti.dev/v1alpha1',
  kind: 'Ensemble',
  metadata: { namespace: SPACE, name: 'graph' },
  spec: {
    maxBatchSize: 0,
    inputs: [{ name: 'x', ...TENSOR }],
    outputs: [{ name: 'y', from: 'y', ...TENSOR }],
    steps: NAMES.map((name, i) => ({
      name,
      modelRef: { name },
      inputMap: { x: i === 0 ? 'x' : `between-${i}` },
      outputMap: { y: i === NAMES.length - 1 ? 'y' : `between-${i + 1}` },
    })),
  },
}

/** Asks for the sum with a value. @returns the answer, and how long it took. */
type Ask = (
  modelName: string,
  value: number,
  timeoutMs?: number,
) => Promise<{ readonly sum: number; readonly ms: number }>

async function openRouter(t: Test): Promise<Ask> {
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

const untilAllAsleep = (): Promise<void> =>
  openWorkloads(SPACE).until('no pod is left, as no request comes', PODS, (pods) => {
    return pods.length === 0
  })

/** Times of a pod, in whole seconds of the API server: when it was made, and when it was Ready. */
function timesOf({ metadata, status }: PlainObject): readonly [number, number] {
  const conditions: readonly PlainObject[] = status.conditions ?? []
  const ready = conditions.find((one) => one['type'] === 'Ready' && one['status'] === 'True')
  return [Date.parse(metadata.creationTimestamp), Date.parse(ready?.['lastTransitionTime'])]
}

await t.test('Models that sleep', { skip: withoutTuttiImages() }, async (t) => {
  const folder = await writeModels(t)
  removeAfter(t)
  await createNamespace(t, SPACE)
  await createClaim(t, SPACE, folder)
  await install()
  await apply(...[...NAMES, 'long'].map(sleeper), GRAPH)
  const ready = ['--for=condition=Ready', '--timeout=300s', '--all', IN_SPACE]
  await kubectl('wait', 'models,ensembles', ...ready)
  await untilAllAsleep()
  await openWorkloads(SPACE).settled('tutti.dev/model=long', 0)
  const ask = await openRouter(t)

  await t.test('at rest there is no pod, and all are ready', async (t) => {
    await kubectl('wait', 'models,ensembles', ...ready)
    for (const name of NAMES) {
      const { status } = await getObject('model', name, IN_SPACE)
      t.match(status, { podsReady: '0/0', desiredReplicas: 0 }, name)
    }
  })

  await t.test('the loads of a graph overlap', async (t) => {
    const slowest = await ask('four', 1)
    t.equal(slowest.sum, 101)
    await untilAllAsleep()
    const whole = await ask('graph', 1)
    t.equal(whole.sum, SUM + 1)
    const pods = await openWorkloads(SPACE).pods(PODS)
    await openWorkloads(SPACE).settled(PODS, NAMES.length)
    const times = (await openWorkloads(SPACE).pods(PODS)).map(timesOf)
    t.equal(pods.length, NAMES.length)
    const lastMade = Math.max(...times.map(([made]) => made))
    const firstReady = Math.min(...times.map(([, isReady]) => isReady))
    t.ok(lastMade <= firstReady, 'all pods were made before one was ready')
    const ratio = (whole.ms / slowest.ms).toFixed(2)
    const [one, three] = [slowest.ms, whole.ms].map((ms) => (ms / 1000).toFixed(1))
    t.comment(`start and load of the slowest alone ${one} s, of all three ${three} s: ${ratio}`)
  })

  await t.test('a long start shows how far it is', async (t) => {
    const kubectlTutti = await openPlugin(t)
    const patient = ask('long', 1)
    const start = await until('the status says what the start waits for', async () => {
      const { status } = await getObject('model', 'long', IN_SPACE)
      return LOADS.test(status.start?.message) && status.start
    })
    t.match(start, { waitsFor: 'Load', pod: /^long-step-/ })
    const shown = await kubectlTutti('status', 'long', '-n', SPACE)
    t.match(
      shown.out,
      /: Starting: it waits for its load: version 1, initialize of long_0 \(\d+ s\)/,
    )
    const error = await ask('long', 1, SHORT_MS).then(String, String)
    t.match(
      error,
      /model 'long' is starting: waited \d\.\d s for its first replica: pod "long-step-.*" waits for its load: version 1, initialize of long_0 \(\d+ s\)/,
    )
    t.comment(error)
    t.equal((await patient).sum, 1001)
  })

  await t.test(`${CYCLES} cycles, with requests at every moment`, async (t) => {
    const wrong: unknown[] = []
    let asked = 0
    const check = async (value: number): Promise<void> => {
      asked += 1
      const got = await ask('graph', value).catch((error: unknown) => ({ sum: String(error) }))
      if (got.sum !== value + SUM) wrong.push({ value, got: got.sum })
    }
    await check(0)
    for (let cycle = 0; cycle < CYCLES; cycle++) {
      await openWorkloads(SPACE).until('the pods end', PODS, (pods) => pods.some(isEnding))
      const requests = MOMENTS_MS.map(async (ms, i) => {
        await delay(ms)
        await check(i)
      })
      await Promise.all(requests)
    }
    t.same(wrong, [], `of ${asked}`)
    await untilAllAsleep()
  })
})
