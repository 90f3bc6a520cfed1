import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LoadedModel } from '@tutti/backends'
import { createPythonEngine, modelConfig, modelSource, stepRequest } from '@tutti/backends/testing'
import { benchPython } from './bench-python.ts'
import { cpuUs, median, printTable } from './figures.ts'
import { treeMemory, treeOf } from './process-tree.ts'

const INSTANCES = 4
const ROUNDS = 5
const ROUND_MS = 1000
const WARM_UP_MS = 200

/** Work that `execute` does for each request. Digests of more than 2 KB release the interpreter's lock. */
const WORK = [
  ['nothing', 'pass'],
  ['waits 5 ms', 'time.sleep(0.005)'],
  ['SHA-256 of 1 MB, lock released', 'hashlib.sha256(DATA).digest()'],
  ['2 ms of Python, lock held', 'spin(0.002)'],
] as const

const MODEL = `import hashlib, time
import numpy as np
import triton_python_backend_utils as pb_utils

WEIGHTS = np.ones(25_000_000, np.float32)
DATA = bytes(1_000_000)


def spin(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


class TritonPythonModel:
    def execute(self, requests):
        WORK
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", np.zeros(1, np.uint8))]) for _ in requests]
`
const port = (name: string) => ({ name, type: 'TYPE_UINT8' as const, dims: [-1] })

interface Way {
  readonly model: LoadedModel
  readonly pids: readonly number[]
}

interface Round {
  readonly perSecond: number
  readonly cpuUs: number
}

/** Four instances of a Python model with 100 MB in a global of its module, each a process or all in one; a caller for each. */
export async function benchInterpreters(): Promise<void> {
  const { python } = benchPython()
  const engine = createPythonEngine({ interpreter: python })
  const rows = [
    ['', 'req/s apart', 'shared', 'ratio', 'CPU us apart', 'shared', 'MB apart', 'shared'],
  ]
  for (const [name, work] of WORK) {
    const folder = await mkdtemp(join(tmpdir(), 'tutti-bench-'))
    try {
      await writeFile(join(folder, 'model.py'), MODEL.replace('WORK', work))
      const load = async (sharesInterpreter: boolean): Promise<Way> => {
        const before = new Set(treeOf(process.pid))
        const config = modelConfig([port('x')], [port('y')], { name: 'm', backend: 'python' })
        const source = modelSource(folder, config)
        const model = await engine.load(source, { instances: INSTANCES, sharesInterpreter })
        const pids = treeOf(process.pid).filter((pid) => !before.has(pid) && hasNoChild(pid))
        return { model, pids }
      }
      const ways = [await load(false), await load(true)]
      rows.push([name, ...(await compare(ways))])
      await Promise.all(ways.map(({ model }) => model.close()))
    } finally {
      await rm(folder, { recursive: true })
    }
  }
  console.log(`\ninterpreters: ${INSTANCES} instances, apart and in one process`)
  printTable(rows)
}

/** The first load starts the zygote, too, which is no instance. */
function hasNoChild(pid: number): boolean {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8') === ''
}

/** In turn, so that what else the machine does hits both. */
async function compare(ways: readonly Way[]): Promise<readonly string[]> {
  const rounds = ways.map((): Round[] => [])
  for (const { model } of ways) await callFor(model, WARM_UP_MS)
  for (let i = 0; i < ROUNDS; i += 1) {
    for (const [at, way] of ways.entries()) rounds[at]?.push(await measure(way))
  }
  const rates = rounds.map((list) => median(list.map(({ perSecond }) => perSecond)))
  const ratios = rounds[0]?.map(({ perSecond }, i) => (rounds[1]?.[i]?.perSecond ?? 0) / perSecond)
  return [
    ...rates.map((rate) => rate.toFixed(0)),
    median(ratios ?? []).toFixed(2),
    ...rounds.map((list) => median(list.map((round) => round.cpuUs)).toFixed(0)),
    ...ways.map(({ pids }) =>
      (sum(pids.map((pid) => treeMemory(pid).proportionalBytes)) / 1e6).toFixed(0),
    ),
  ]
}

async function measure({ model, pids }: Way): Promise<Round> {
  const cpu = sum(pids.map(cpuUs))
  const started = performance.now()
  const calls = await callFor(model, ROUND_MS)
  const seconds = (performance.now() - started) / 1000
  return { perSecond: calls / seconds, cpuUs: (sum(pids.map(cpuUs)) - cpu) / calls }
}

/** One caller for each instance. @returns the number of answers. */
async function callFor(model: LoadedModel, ms: number): Promise<number> {
  const until = performance.now() + ms
  const { signal } = new AbortController()
  const input = { name: 'x', datatype: 'UINT8' as const, shape: [1], data: new Uint8Array(1) }
  const callers = Array.from({ length: INSTANCES }, async (_, instance) => {
    let calls = 0
    for (; performance.now() < until; calls += 1) {
      const batch = [{ request: stepRequest([input]), sink: { send: () => {}, fail } }]
      await model.execute(batch, { instance, signal })
    }
    return calls
  })
  return sum(await Promise.all(callers))
}

function fail(error: Error): never {
  throw error
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
