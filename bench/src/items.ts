import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildOnnx } from '@tutti/backends/testing'
import { InferenceClient } from '@tutti/protocol/client'
import { benchPython } from './bench-python.ts'
import { median, printTable } from './figures.ts'
import { treeCpuMs } from './process-tree.ts'
import { type BenchServer, startProgram } from './servers.ts'
import { readStatistics } from './statistics.ts'

const ITEMS = 64
const BATCH = 32
const [HEIGHT, WIDTH] = [48, 320]
const ROUNDS = 15
const SECONDS = 1
const IN_FLIGHT = 4
const READER = 'reader'

/** Lines of text as `cropRotated` gives them. */
const lines = Uint8Array.from(
  { length: ITEMS * HEIGHT * WIDTH * 3 },
  (_, i) => (i * 2_654_435_761) >>> 24,
)
const shape = [ITEMS, HEIGHT, WIDTH, 3]

/** Ways to run a network for each of many items; all have the step before it. */
const WAYS = ['forEach', 'batches', 'single', 'none'] as const
type Way = (typeof WAYS)[number]
const NAMES: Readonly<Record<Way, string>> = {
  forEach: 'an Ensemble, forEach',
  batches: 'Python (BLS), in batches of 32',
  single: 'Python (BLS), item by item',
  none: 'the step before alone',
}

/** Calls the reader for rows of its input, so many at a time. */
const BLS = `import asyncio

import numpy as np
import triton_python_backend_utils as pb_utils

MOST = ROWS


class TritonPythonModel:
    async def execute(self, requests):
        return [await self.answer(request) for request in requests]

    async def answer(self, request):
        x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
        calls = [self.call(x[i : i + MOST]) for i in range(0, len(x), MOST)]
        return pb_utils.InferenceResponse([pb_utils.Tensor("y", np.concatenate(await asyncio.gather(*calls)))])

    async def call(self, rows):
        request = pb_utils.InferenceRequest(
            model_name="reader", inputs=[pb_utils.Tensor("x", rows)], requested_output_names=["y"]
        )
        response = await request.async_exec()
        if response.has_error():
            raise pb_utils.TritonModelException(response.error().message())
        return pb_utils.get_output_tensor_by_name(response, "y").as_numpy()
`
const CONFIG = (backend: string, batch: number, first: string) => `backend: "${backend}"
max_batch_size: ${batch}
input { name: "x" data_type: TYPE_FP32 dims: [ ${first}3, ${HEIGHT}, ${WIDTH} ] }
output { name: "y" data_type: TYPE_FP32 dims: [ ${first}${WIDTH} ] }
`

const NORMALISE = `{name: normalise, scale: 0.00392156862745098, mean: [0.5], std: [0.5], layout: CHW}`
const STEPS: Readonly<Record<Way, string>> = {
  forEach: `- {name: read, modelRef: {name: reader}, forEach: {items: {x: ready.image}, maxItems: ${ITEMS}}}`,
  batches: '- {name: read, modelRef: {name: batches}, inputMap: {x: ready.image}}',
  single: '- {name: read, modelRef: {name: single}, inputMap: {x: ready.image}}',
  none: '- {name: read, builtin: {name: slice, index: "..., 0, 0, :"}, inputMap: {input: ready.image}}',
}

const manifestOf = (way: Way): string => `
apiVersion: tutti.dev/v1alpha1
kind: Ensemble
metadata: {name: with-${way.toLowerCase()}}
spec:
  modelName: with_${way}
  inputs: [{name: lines, datatype: UINT8, shape: [-1, ${HEIGHT}, ${WIDTH}, 3]}]
  outputs: [{name: "y", from: read.${way === 'none' ? 'output' : 'y'}}]
  steps:
    - {name: ready, builtin: ${NORMALISE}, inputMap: {image: lines}}
    ${STEPS[way]}
`

const modelManifest = (name: string, format: string): string => `
apiVersion: tutti.dev/v1alpha1
kind: Model
metadata: {name: ${name}}
spec: {modelName: ${name}, modelFormat: {name: ${format}}, storageUri: pvc://items/${name}}
`

/** A network that costs next to nothing, so that what is around it is measured. */
function buildReader(): Uint8Array {
  return buildOnnx({
    inputs: [{ name: 'x', type: 'FP32', dims: ['N', 3, HEIGHT, WIDTH] }],
    outputs: [{ name: 'y', type: 'FP32', dims: ['N', WIDTH] }],
    operators: [
      {
        op: 'ReduceMean',
        inputs: ['x'],
        outputs: ['y'],
        attributes: { axes: [1, 2], keepdims: 0 },
      },
    ],
  })
}

async function writeModels(folder: string): Promise<string> {
  const write = async (
    name: string,
    file: string,
    content: string | Uint8Array,
    config: string,
  ) => {
    await mkdir(join(folder, name, '1'), { recursive: true })
    await writeFile(join(folder, name, '1', file), content)
    await writeFile(join(folder, name, 'config.pbtxt'), config)
  }
  await write(READER, 'model.onnx', buildReader(), CONFIG('onnxruntime', BATCH, ''))
  for (const [name, rows] of [
    ['batches', BATCH],
    ['single', 1],
  ] as const) {
    await write(name, 'model.py', BLS.replace('ROWS', String(rows)), CONFIG('python', 0, '-1, '))
  }
  const models = [modelManifest(READER, 'onnx'), modelManifest('batches', 'python')]
  const manifests = [...WAYS.map(manifestOf), ...models, modelManifest('single', 'python')]
  const file = join(folder, 'all.yaml')
  await writeFile(file, manifests.join('---'))
  return file
}

interface Measured {
  readonly perSecond: number
  /** Milliseconds for each request. */
  readonly cpu: number
  readonly engine: number
}

/** Runs a network for each of 64 items, in ways that an Ensemble and a Python model have. */
export async function benchItems(nodeFlags: readonly string[]): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'tutti-bench-'))
  const { python } = benchPython()
  const file = await writeModels(folder)
  const args = [
    'services/cli/dist/main.js',
    'serve',
    `-f=${file}`,
    `--storage-map=pvc://items=${folder}`,
  ]
  const server = await startProgram([...args, `--python=${python}`], { nodeFlags })
  const client = new InferenceClient({ address: `127.0.0.1:${server.grpcPort}` })
  const all = new Map(WAYS.map((way) => [way, [] as Measured[]]))
  try {
    for (let round = -1; round < ROUNDS; round += 1) {
      for (const way of WAYS) {
        const measured = await measure(server, client, way)
        if (round >= 0) all.get(way)?.push(measured)
      }
    }
    print(all)
  } finally {
    client.close()
    await server.stop()
    await rm(folder, { recursive: true })
  }
}

async function measure(server: BenchServer, client: InferenceClient, way: Way): Promise<Measured> {
  const engineMs = async () => (await readStatistics(client, READER)).computeInferNs / 1e6
  const [cpuBefore, engineBefore] = [treeCpuMs(server.pid), await engineMs()]
  const started = performance.now()
  const end = started + SECONDS * 1000
  let count = 0
  const ask = async (): Promise<void> => {
    while (performance.now() < end) {
      const inputs = [{ name: 'lines', datatype: 'UINT8', shape, data: lines } as const]
      const { outputs } = await client.infer({ modelName: `with_${way}`, inputs })
      const got = outputs[0]?.data.byteLength ?? 0
      if (got < ITEMS * WIDTH * 4) throw new Error(`${way} gave ${got} bytes`)
      count += 1
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, ask))
  const seconds = (performance.now() - started) / 1000
  return {
    perSecond: count / seconds,
    cpu: (treeCpuMs(server.pid) - cpuBefore) / count,
    engine: ((await engineMs()) - engineBefore) / count,
  }
}

function print(all: ReadonlyMap<Way, readonly Measured[]>): void {
  const middle = (way: Way, read: (one: Measured) => number): number =>
    median((all.get(way) ?? []).map(read))
  const outside = (way: Way): number => middle(way, ({ cpu, engine }) => cpu - engine)
  console.log(
    `\nitems: a network for each of ${ITEMS} lines of ${HEIGHT} x ${WIDTH}, ${IN_FLIGHT} requests in flight`,
  )
  printTable([
    ['', 'requests/s', 'cpu ms', 'network ms', 'cpu ms outside of it'],
    ...WAYS.map((way) => [
      NAMES[way],
      middle(way, ({ perSecond }) => perSecond).toFixed(1),
      middle(way, ({ cpu }) => cpu).toFixed(1),
      middle(way, ({ engine }) => engine).toFixed(1),
      outside(way).toFixed(1),
    ]),
  ])
  const less = outside('forEach') / outside('single')
  console.log(`processor time outside of the network, over BLS item by item: ${less.toFixed(2)}`)
  const faster =
    middle('forEach', (one) => one.perSecond) / middle('batches', (one) => one.perSecond)
  console.log(`requests/s over BLS in batches: ${faster.toFixed(2)}`)
}
