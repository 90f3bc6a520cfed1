import { createRequire } from 'node:module'
import { parentPort, workerData } from 'node:worker_threads'
import type { ChainPlan } from './direct-chain.ts'

/* Runs the models of a ChainPlan with onnxruntime-node as it comes: the least that the ensemble can take. */

interface RuntimeTensor {
  readonly data: Uint8Array
  readonly dims: readonly number[]
}

interface RuntimeSession {
  readonly inputNames: readonly string[]
  readonly outputNames: readonly string[]
  run(feeds: Readonly<Record<string, RuntimeTensor>>): Promise<Record<string, RuntimeTensor>>
  release(): Promise<void>
}

interface Runtime {
  readonly InferenceSession: { create(path: string, options: object): Promise<RuntimeSession> }
  readonly Tensor: new (type: 'uint8', data: Uint8Array, dims: readonly number[]) => RuntimeTensor
}

// The copy that the served engines use, which is a dependency of theirs.
const RUNTIME = 'onnxruntime-node'
const require = createRequire(import.meta.resolve('@tutti/backends'))
const { InferenceSession, Tensor }: Runtime = require(RUNTIME)

const plan: ChainPlan = workerData
/** As the engine sets them for a model whose configuration says nothing. */
const options = { intraOpNumThreads: 1, interOpNumThreads: 1, executionMode: 'sequential' }

const sessions: RuntimeSession[] = []
for (const file of plan.modelFiles) sessions.push(await InferenceSession.create(file, options))

async function runChain(): Promise<number[]> {
  let tensor = new Tensor('uint8', plan.data, plan.shape)
  const times: number[] = []
  for (const session of sessions) {
    const [input = '', output = ''] = [session.inputNames[0], session.outputNames[0]]
    const started = performance.now()
    const outputs = await session.run({ [input]: tensor })
    times.push(performance.now() - started)
    tensor = outputs[output] ?? tensor
  }
  return times
}

async function handle(message: 'run' | 'stop'): Promise<void> {
  if (message === 'run') {
    parentPort?.postMessage(await runChain(), [])
    return
  }
  for (const session of sessions) await session.release()
  parentPort?.close()
}

parentPort?.on('message', (message: 'run' | 'stop') => void handle(message))
parentPort?.postMessage([], [])
