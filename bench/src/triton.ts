import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { InferenceClient } from '@tutti/protocol'
import { benchPython } from './bench-python.ts'
import { median, printTable, quantile } from './figures.ts'
import { ROOT, startTutti, untilReady } from './servers.ts'
import { startTriton } from './triton-server.ts'

const ENSEMBLE = 'ens_face_restoration_v2.1'
const STEPS = ['pre_gfpgan', 'infer_face_restoration_v2.1', 'post_gfpgan'] as const
const ADD_SUB = 'py_add_sub'
const SIDE = 512

type Request = Parameters<InferenceClient['infer']>[0]

interface Case {
  readonly name: string
  readonly request: Request
  readonly oneByOne: number
  readonly inFlight: number
  readonly perRound: number
}

const integers = new Uint8Array(Int32Array.from({ length: 16 }, (_, i) => i).buffer)
const pixels = Uint8Array.from({ length: SIDE * SIDE * 3 }, (_, i) => (i * 2_654_435_761) >>> 24)

const CASES: readonly Case[] = [
  {
    name: 'add/sub of 16 integers',
    request: {
      modelName: ADD_SUB,
      inputs: ['INPUT0', 'INPUT1'].map((name) => ({
        name,
        datatype: 'INT32',
        shape: [1, 16],
        data: integers,
      })),
    },
    oneByOne: 1000,
    inFlight: 16,
    perRound: 2000,
  },
  {
    name: `three face steps at ${SIDE} x ${SIDE}`,
    request: {
      modelName: ENSEMBLE,
      inputs: [{ name: 'raw_image', datatype: 'UINT8', shape: [SIDE, SIDE, 3], data: pixels }],
    },
    oneByOne: 30,
    inFlight: 16,
    perRound: 32,
  },
]
const ROUNDS = 5
const WARM_UPS = 20

/** The same repository of Python models in `tutti serve` and in NVIDIA's tritonserver, which take turns. */
export async function benchTriton(nodeFlags: readonly string[]): Promise<void> {
  const interpreter = benchPython()
  const opened = new AsyncDisposableStack()
  try {
    const repository = await writeRepository(opened)
    const triton = await startTriton(repository, interpreter)
    opened.defer(() => triton.stop())
    const path = `${dirname(interpreter.python)}${delimiter}${process.env['PATH']}`
    const tutti = await startTutti(repository, { nodeFlags, env: { PATH: path } })
    opened.defer(() => tutti.stop())
    const [ours, theirs] = [tutti, triton].map(({ grpcPort }) => {
      const client = new InferenceClient({ address: `127.0.0.1:${grpcPort}` })
      opened.defer(async () => client.close())
      return client
    })
    if (ours === undefined || theirs === undefined) return
    for (const one of CASES) {
      await untilReady(ours, one.request.modelName)
      await untilReady(theirs, one.request.modelName)
      await compareAnswers(one, ours, theirs)
      console.log(`\ntriton: ${one.name}, Python models`)
      await oneByOne(one, ours, theirs)
      await loaded(one, ours, theirs)
    }
  } finally {
    await opened.disposeAsync()
  }
}

/** The add/sub model as it is, and the face system with each ONNX file run by a model.py. */
async function writeRepository(opened: AsyncDisposableStack): Promise<string> {
  const repository = await mkdtemp(join(tmpdir(), 'tutti-bench-'))
  opened.defer(() => rm(repository, { recursive: true }))
  const models = join(ROOT, 'model_repository')
  const fixture = join(models, '.variants', 'fixtures', 'python', ADD_SUB)
  await cp(fixture, join(repository, ADD_SUB), { recursive: true })
  await cp(join(models, ENSEMBLE), join(repository, ENSEMBLE), { recursive: true })
  for (const step of STEPS) {
    const folder = join(repository, step)
    await cp(join(models, step), folder, { recursive: true })
    await cp(join(ROOT, 'bench', 'python', 'onnx_model.py'), join(folder, '1', 'model.py'))
    const config = join(folder, 'config.pbtxt')
    const text = await readFile(config, 'utf8')
    await writeFile(config, text.replace('platform: "onnxruntime_onnx"', 'backend: "python"'))
  }
  return repository
}

async function compareAnswers(
  { name, request }: Case,
  ours: InferenceClient,
  theirs: InferenceClient,
): Promise<void> {
  for (let i = 0; i < WARM_UPS; i += 1) {
    const [one, other] = [await bytesOf(ours, request), await bytesOf(theirs, request)]
    if (Buffer.compare(one, other) !== 0) throw new Error(`${name}: the two gave other bytes`)
  }
}

async function bytesOf(client: InferenceClient, request: Request): Promise<Buffer> {
  const { outputs } = await client.infer(request)
  const sorted = outputs.toSorted((one, other) => (one.name < other.name ? -1 : 1))
  return Buffer.concat(sorted.map(({ data }) => data))
}

async function oneByOne(
  { request, oneByOne: requests }: Case,
  ours: InferenceClient,
  theirs: InferenceClient,
): Promise<void> {
  const timed = async (client: InferenceClient): Promise<number> => {
    const started = performance.now()
    await client.infer(request)
    return performance.now() - started
  }
  const [tutti, triton]: [number[], number[]] = [[], []]
  for (let i = 0; i < requests; i += 1) {
    tutti.push(await timed(ours))
    triton.push(await timed(theirs))
  }
  console.log(`one request in flight, ${requests} of each`)
  printTable([
    ['', 'p50 ms', 'p90 ms'],
    latencyRow('tutti serve', tutti),
    latencyRow('tritonserver', triton),
  ])
  console.log(`p50 over tritonserver: ${(median(tutti) / median(triton)).toFixed(3)}`)
}

function latencyRow(name: string, ms: readonly number[]): readonly string[] {
  return [name, median(ms).toFixed(3), quantile(ms, 0.9).toFixed(3)]
}

async function loaded(one: Case, ours: InferenceClient, theirs: InferenceClient): Promise<void> {
  const rounds: { readonly tutti: number; readonly triton: number }[] = []
  for (let i = 0; i < ROUNDS; i += 1) {
    rounds.push({ tutti: await perSecond(one, ours), triton: await perSecond(one, theirs) })
  }
  console.log(`${one.inFlight} requests in flight, ${ROUNDS} rounds of ${one.perRound}`)
  printTable([
    ['', 'requests/s'],
    ['tutti serve', median(rounds.map((r) => r.tutti)).toFixed(1)],
    ['tritonserver', median(rounds.map((r) => r.triton)).toFixed(1)],
  ])
  const ratios = rounds.map((r) => r.tutti / r.triton)
  const range = `${Math.min(...ratios).toFixed(3)} to ${Math.max(...ratios).toFixed(3)}`
  console.log(`requests/s over tritonserver: ${median(ratios).toFixed(3)} (${range})`)
}

async function perSecond(one: Case, client: InferenceClient): Promise<number> {
  let left = one.perRound
  const clientLoop = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      await client.infer(one.request)
    }
  }
  const started = performance.now()
  await Promise.all(Array.from({ length: one.inFlight }, clientLoop))
  return one.perRound / ((performance.now() - started) / 1000)
}
