import { appendFileSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import type { SessionPlan } from '../onnxruntime/session-contract.ts'

/*
 * A session thread with faults to order. The file `faults` beside the model lists what the first, second, ... start does,
 * separated by commas; the last one holds for all further starts. The file `starts` counts them.
 *   serve   the real thread
 *   throw   loads, then throws out of the first execution
 *   exit    loads, then ends in the first execution
 *   refuse  reports that the session cannot be made
 *   die     throws before it reports anything
 */

const plan: SessionPlan = workerData
const counter = join(dirname(plan.modelFile), 'starts')
appendFileSync(counter, '.')
const script = readFileSync(join(dirname(plan.modelFile), 'faults'), 'utf8').split(',')
const fault = script[Math.min(statSync(counter).size, script.length) - 1]

function failIn(execution: () => void): void {
  parentPort?.postMessage({}, [])
  parentPort?.once('message', execution)
}

if (fault === 'serve') {
  const thread = '../onnxruntime/session-thread'
  await import(`${thread}.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`)
} else if (fault === 'refuse') parentPort?.postMessage({ problem: 'ordered' }, [])
else if (fault === 'die') throw new Error('died as ordered')
else if (fault === 'exit') failIn(() => process.exit(3))
else {
  failIn(() => {
    throw new Error('threw as ordered')
  })
}
