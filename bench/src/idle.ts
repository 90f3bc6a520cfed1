import { execFileSync } from 'node:child_process'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startNatsServer } from '@tutti/chassis/testing'
import { benchPython } from './bench-python.ts'
import { printTable } from './figures.ts'
import { makeFixtureRepository } from './fixture.ts'
import { openOperatorCluster } from './operator-cluster.ts'
import { startOperator } from './operator-process.ts'
import { type TreeMemory, treeMemory } from './process-tree.ts'
import { type BenchServer, ROOT, startProgram } from './servers.ts'
import { printStarts } from './starts.ts'
import { startTriton } from './triton-server.ts'

const IDLE_MS = 30_000
const MODEL = 'identity_fp32'
const PYTHON_FIXTURES = join(ROOT, 'model_repository/.variants/fixtures/python')
/** Two instances and one. */
const PYTHON_MODELS = ['py_add_sub', 'py_negate'] as const
const OPERATOR_MODELS = 100
/** As images run them. */
const STEP = 'services/step/dist/bundle/main.js'
const ROUTER = 'services/router/dist/bundle/main.js'
const BUNDLER = 'scripts/bundle-programs.mjs'
const TUTTI = 'services/cli/dist/main.js'

/** Processes that have nothing to do, by name. */
type Idle = ReadonlyMap<string, number>

/** Memory of processes that have been idle for 30 seconds, and what the start of a command costs. */
export async function benchIdle(nodeFlags: readonly string[]): Promise<void> {
  execFileSync(process.execPath, [BUNDLER], { cwd: ROOT })
  await printStarts()
  console.log(`\nidle: resident memory after ${IDLE_MS / 1000} s without a request`)
  const rows: string[][] = [['', 'processes', 'resident MB', 'proportional MB']]
  for (const open of [openEndpoints, openPythons, openOperator]) {
    await using opened = new AsyncDisposableStack()
    const idle = await open(opened, nodeFlags)
    await sleep(IDLE_MS)
    for (const [name, pid] of idle) rows.push(toRow(name, treeMemory(pid)))
  }
  printTable(rows)
}

function toRow(name: string, memory: TreeMemory): string[] {
  const { processes, residentBytes, proportionalBytes } = memory
  return [name, String(processes), megabytes(residentBytes), megabytes(proportionalBytes)]
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(0)
}

/** A step with an ONNX model and the router that sends to it. */
async function openEndpoints(
  opened: AsyncDisposableStack,
  nodeFlags: readonly string[],
): Promise<Idle> {
  const broker = await startNatsServer()
  opened.defer(() => broker.stop())
  const repository = makeFixtureRepository(MODEL)
  opened.defer(() => repository.remove())
  const args = [`--model-repository=${repository.path}`, `--nats=${broker.url}`]
  const step = keep(opened, await startProgram([STEP, ...args], { nodeFlags }))
  const router = keep(opened, await startProgram([ROUTER, ...args], { nodeFlags }))
  return new Map([
    ['step, one ONNX model', step.pid],
    ['router', router.pid],
  ])
}

/** `tutti serve` and a tritonserver with the same two Python models. */
async function openPythons(
  opened: AsyncDisposableStack,
  nodeFlags: readonly string[],
): Promise<Idle> {
  const interpreter = benchPython()
  const repository = await mkdtemp(join(tmpdir(), 'tutti-bench-'))
  opened.defer(() => rm(repository, { recursive: true }))
  for (const model of PYTHON_MODELS) {
    await cp(join(PYTHON_FIXTURES, model), join(repository, model), { recursive: true })
  }
  const env = { PATH: `${dirname(interpreter.python)}${delimiter}${process.env['PATH']}` }
  const args = [TUTTI, 'serve', `--model-repository=${repository}`]
  const ours = keep(opened, await startProgram(args, { nodeFlags, env }))
  const triton = keep(opened, await startTriton(repository, interpreter))
  return new Map([
    ['tutti serve, two Python models', ours.pid],
    ['tritonserver, the same', triton.pid],
  ])
}

/** The operator, which has made what its Models need. */
async function openOperator(
  opened: AsyncDisposableStack,
  nodeFlags: readonly string[],
): Promise<Idle> {
  const { server, models, accountFolder } = await openOperatorCluster(opened, OPERATOR_MODELS)
  const o = { nodeFlags, models: models.length, accountFolder }
  const operator = await startOperator(server, o)
  opened.defer(() => operator.stop())
  await operator.passed()
  return new Map([[`operator, ${OPERATOR_MODELS} Models`, operator.pid]])
}

function keep(opened: AsyncDisposableStack, server: BenchServer): BenchServer {
  opened.defer(() => server.stop())
  return server
}
