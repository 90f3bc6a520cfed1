import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { killGroup } from '../setup/child.mjs'
import { TapOutput } from './tap-output.mjs'
import { suiteOf } from './test-files.mjs'

/** Time that tap needs to tell of a test that does not end, before its process is killed. */
const GRACE_MS = 20_000
/** Lines that are kept of a process of which no test has failed yet. */
const KEPT_LINES = 10_000
const PROPERTIES = `--import=${new URL('properties.mjs', import.meta.url)}`

/**
 * @typedef {object} Outcome
 * @property {readonly string[]} files - those of the process.
 * @property {ReadonlyMap<string, { passed: number, failed: number, skipped: number }>} counts - the assertions of each file; a crash is
 *   one failure.
 * @property {ReadonlySet<string>} failed - the files that failed.
 * @property {readonly string[]} notRun - the files that did not run, or may have taken the process down while another ran.
 * @property {readonly string[]} skipped - what was skipped, and why.
 * @property {readonly string[]} lines - what it wrote, at least from before its first failure on.
 * @property {number} ms
 */

/**
 * Runs test files in one process, with all that they start in one process group. The group ends with the process.
 *
 * @param {{ root: string, files: readonly string[], env: NodeJS.ProcessEnv, timeoutS: number, signal: AbortSignal }} o - `signal` ends
 *   the group at once.
 * @returns {Promise<Outcome>}
 */
export async function runProcess({ root, files, env, timeoutS, signal }) {
  const startedMs = performance.now()
  const output = new TapOutput(files)
  const lines = []
  const keep = (line) => {
    // The lines that led to a failure, and those of the failure, stay.
    if (lines.push(line) > KEPT_LINES && output.failed.size === 0) lines.shift()
  }
  const take = (line) => {
    keep(line)
    output.take(line)
  }
  const args =
    files.length === 1 ? files : [join(import.meta.dirname, 'run-batch.mjs'), suiteOf(files[0])]
  const child = spawn(process.execPath, [PROPERTIES, ...args], {
    cwd: root,
    env: {
      ...env,
      // The same terminal everywhere: what passes on a desk passes in CI.
      TERM: 'dumb',
      NO_COLOR: '1',
      // In seconds; a test that has none of its own ends then.
      TAP_TIMEOUT: String(timeoutS),
      TUTTI_TEST_FILES: JSON.stringify(files),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  const kill = () => killGroup(child.pid, 'SIGKILL')
  const timer = setTimeout(kill, timeoutS * 1000 + GRACE_MS)
  signal.addEventListener('abort', kill, { once: true })
  // Whatever a program writes there is no test point.
  createInterface({ input: child.stderr }).on('line', (line) => keep(`# ${line}`))
  createInterface({ input: child.stdout }).on('line', take)
  const exited = once(child, 'exit').finally(() => {
    clearTimeout(timer)
    // Processes that it left behind would hold its pipes open, and the machine busy.
    kill()
  })
  const [[code, exitSignal]] = await Promise.all([exited, once(child, 'close')])
  signal.removeEventListener('abort', kill)
  // For what is no property of fast-check, or fails within one without throwing.
  lines.push(`# TUTTI_SEED=${env.TUTTI_SEED ?? 1}`)
  return toOutcome({ files, output, lines, code, exitSignal, ms: performance.now() - startedMs })
}

function toOutcome({ files, output, lines, code, exitSignal, ms }) {
  const { counts, failed, skipped } = output
  const hasFailed = failed.size > 0
  const fail = (file, reason) => {
    failed.add(file)
    counts.get(file).failed += 1
    lines.push(`# ${file}: ${reason}`)
  }
  if (!output.isComplete || (code !== 0 && !hasFailed)) {
    fail(output.file, `its process ended by ${exitSignal ?? `exit code ${code}`}`)
  }
  for (const [file, { passed, skipped }] of counts) {
    if (passed + skipped === 0 && !failed.has(file)) fail(file, 'no assertion ran')
  }
  // Else the file that ran last may not be the one that ended the process: an error may come late.
  const isExplained = code === 0 || (code === 1 && hasFailed)
  const isOrderly = isExplained && output.hasRunAll && !output.hasStray
  const notRun = files.filter((file) => !counts.has(file) || !(isOrderly || failed.has(file)))
  return { files, counts, failed, notRun, skipped, lines, ms }
}
