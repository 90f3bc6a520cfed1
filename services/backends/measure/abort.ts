/*
 * What happens when a thread or the process ends around a run of onnxruntime-node. Each scenario is a process of its own,
 * eight times. Run: node measure/abort.ts
 */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { InferenceSession, Tensor } from 'onnxruntime-node'
import { createOnnxEngine } from '../dist/index.js'
import {
  ADD_CONFIG,
  addRequest,
  buildAddModel,
  buildOnnx,
  modelSource,
} from '../dist/testing/index.js'

const PROCESSES = 8
const WIDTH = 1100
const SCENARIOS = [
  'threads end by themselves',
  'terminate idle threads',
  'exit with idle threads',
  'SIGTERM with idle threads',
  'terminate during a run',
  'exit during a run',
  'SIGTERM during a run',
  'engine: close during executions, then exit',
] as const

/** Half a second of matrix products. */
function slowModel(): Uint8Array {
  const dims = [WIDTH, WIDTH]
  const operators = Array.from({ length: 12 }, (_, i) => ({
    op: 'MatMul',
    inputs: [i === 0 ? 'x' : `t${i}`, 'x'],
    outputs: [i === 11 ? 'y' : `t${i + 1}`],
  }))
  const value = (name: string) => ({ name, type: 'FP32' as const, dims })
  return buildOnnx({ inputs: [value('x')], outputs: [value('y')], operators })
}

async function runInThread(model: Uint8Array): Promise<void> {
  const session = await InferenceSession.create(model, {
    intraOpNumThreads: 1,
    logSeverityLevel: 4,
  })
  const x = new Tensor('float32', new Float32Array(WIDTH * WIDTH), [WIDTH, WIDTH])
  const port = parentPort
  if (port === null) return
  port.on('message', (message) => {
    if (message === 'stop') port.close()
    else {
      port.postMessage('running')
      void session.run({ x }).then(() => port.postMessage('done'))
    }
  })
  port.postMessage('ready')
}

async function startThreads(isRunning: boolean): Promise<Worker[]> {
  const model = slowModel()
  const threads = [1, 2].map(
    () => new Worker(fileURLToPath(import.meta.url), { workerData: model }),
  )
  await Promise.all(threads.map((thread) => once(thread, 'message')))
  if (isRunning) {
    const running = threads.map((thread) => once(thread, 'message'))
    for (const thread of threads) thread.postMessage('run', [])
    await Promise.all(running)
  }
  // Long enough that the native call has begun, far shorter than it lasts.
  if (isRunning) await new Promise((resolve) => setTimeout(resolve, 60))
  return threads
}

async function closeEngine(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'tutti-abort-'))
  writeFileSync(join(directory, 'model.onnx'), buildAddModel(2))
  const model = await createOnnxEngine().load(modelSource(directory, ADD_CONFIG), { instances: 2 })
  const { signal } = new AbortController()
  const sink = { send: () => {} }
  const running = [0, 1].map((instance) =>
    model.execute([addRequest(1, 0)], sink, { instance, signal }),
  )
  await model.close()
  await Promise.all(running)
  rmSync(directory, { recursive: true })
  process.exit(0)
}

async function runScenario(name: string): Promise<void> {
  if (name.startsWith('engine')) return await closeEngine()
  const threads = await startThreads(name.includes('during'))
  if (name.startsWith('terminate')) await Promise.all(threads.map((thread) => thread.terminate()))
  else if (name.startsWith('exit')) process.exit(0)
  else if (name.startsWith('SIGTERM')) process.kill(process.pid, 'SIGTERM')
  else for (const thread of threads) thread.postMessage('stop', [])
}

function report(): void {
  process.stdout.write(`node ${process.version}, ${PROCESSES} processes each\n`)
  for (const name of SCENARIOS) {
    const ends = new Map<string, number>()
    for (let i = 0; i < PROCESSES; i += 1) {
      const file = fileURLToPath(import.meta.url)
      const { status, signal } = spawnSync(process.execPath, [file, name], {
        stdio: 'ignore',
        timeout: 30_000,
      })
      const end = signal ?? `exit ${status}`
      ends.set(end, (ends.get(end) ?? 0) + 1)
    }
    const text = [...ends].map(([end, count]) => `${end} x${count}`).join(', ')
    process.stdout.write(`${name}: ${text}\n`)
  }
}

const scenario = process.argv[2]
if (!isMainThread) await runInThread(workerData)
else if (scenario === undefined) report()
else await runScenario(scenario)
