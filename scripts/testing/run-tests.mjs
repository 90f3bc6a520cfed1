import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { withLock } from '../setup/lock.mjs'
import { toolEnvironment } from '../setup/node-24.mjs'
import { withSignals } from '../setup/signals.mjs'
import { createProvider } from './needs.mjs'
import { Report } from './report.mjs'
import { runProcess } from './run-process.mjs'
import { needsOf, suiteOf } from './test-files.mjs'

/** Seconds that a process of tests may take; the machines of a CI are slow when they are busy. */
const TIMEOUT_S = 600
/** More processes than cores: measured, tests wait for 0.4 of their time, for other processes, for Kubernetes and for the clock. */
const BUSY_FACTOR = 1.5

/**
 * Runs test files and prints how they went: each process as it ends, in full if it failed; then each suite's time, what was skipped,
 * and as the last line the totals. A file begins once what it needs is there, so tests run while others' needs are built. A file that
 * fails runs once more, alone, after all others; if it passes then, it is printed as flaky.
 *
 * @param {{ root: string, files: readonly string[], env?: NodeJS.ProcessEnv, jobs?: number, timeoutS?: number,
 *   isOnce?: boolean, hasComments?: boolean, signal?: AbortSignal, print?: (text: string) => void,
 *   atEnd?: () => Promise<string | undefined>, provide?: (needs: readonly string[]) => Promise<NodeJS.ProcessEnv> }} o -
 *   `env` adds to this process's environment; `jobs`: how many processes at once; `timeoutS`: how long one may take;
 *   `isOnce`: what fails does not run again; `hasComments`: comments of subtests are printed; `print` takes the report; `atEnd` resolves
 *   with a reason why the run fails though its tests passed; `provide` gives a file's environment by its needs.
 * @returns {Promise<number>} the exit code: 0 only if something ran and nothing failed in the end.
 */
export async function runTests(o) {
  return await withLock(
    // Two runs in one checkout would mix their coverage and the files that they write.
    join(o.root, '.tap', 'test.lock'),
    () => withSignals((own) => runAll({ ...o, signal: AbortSignal.any([own, o.signal ?? own]) })),
    () => console.error('Waiting for another test run in this checkout to end ...'),
    o.signal,
  )
}

async function runAll({ root, files, ...o }) {
  const failure = new AbortController()
  const signal = AbortSignal.any([o.signal, failure.signal])
  const {
    jobs = Math.ceil(BUSY_FACTOR * Math.max(2, availableParallelism())),
    timeoutS = TIMEOUT_S,
  } = o
  const provide = o.provide ?? createProvider(root, { ...toolEnvironment(root), ...o.env })
  const report = new Report(o.print, o.hasComments)
  const run = async (task, taskEnv) => {
    const options = { root, env: taskEnv, timeoutS, signal }
    return await runProcess({ ...options, files: task.files })
  }
  const pool = { jobs, signal, provide, fail: (reason) => failure.abort(reason) }
  await runPool(toTasks(root, files), pool, async (task, taskEnv) => {
    report.add(await run(task, taskEnv))
  })
  for (const file of o.isOnce === true ? [] : report.unsettled) {
    // oxlint-disable no-await-in-loop -- a second run is alone
    const taskEnv = await provide(needsOf(root, file))
    report.settle(file, await run({ files: [file] }, taskEnv))
    // oxlint-enable no-await-in-loop
    signal.throwIfAborted()
  }
  return report.print(await o.atEnd?.())
}

/** Files that need nothing share a process with the others of their package: each process costs a start. */
function toTasks(root, files) {
  const shared = new Map()
  const tasks = []
  for (const file of files) {
    const needs = needsOf(root, file)
    const suite = suiteOf(file)
    const isShared = needs.length === 0 && /^(services|operator)\b/.test(suite)
    if (isShared && shared.has(suite)) {
      shared.get(suite).files.push(file)
      continue
    }
    const task = { files: [file], needs }
    tasks.push(task)
    if (isShared) shared.set(suite, task)
  }
  return tasks
}

/** Works on tasks in their order, `jobs` at a time, but on none before what it needs is there. What cannot be had fails all at once. */
async function runPool(tasks, { jobs, signal, provide, fail }, work) {
  const waiting = tasks.map((task) => {
    const entry = { task, env: undefined }
    const prepare = async () => {
      entry.env = await provide(task.needs)
    }
    entry.ready = prepare()
    entry.ready.catch(fail)
    return entry
  })
  const worker = async () => {
    while (waiting.length > 0) {
      signal.throwIfAborted()
      const index = waiting.findIndex(({ env }) => env !== undefined)
      // oxlint-disable no-await-in-loop -- one after the other
      if (index < 0) {
        await Promise.race(waiting.map(({ ready }) => ready))
        continue
      }
      const [{ task, env }] = waiting.splice(index, 1)
      await work(task, env)
      // oxlint-enable no-await-in-loop
    }
  }
  await Promise.all(Array.from({ length: jobs }, worker))
  signal.throwIfAborted()
}
