import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { runChild } from '../setup/child.mjs'
import { renderTotals, TapOutput } from './tap-output.mjs'
import { suiteOf } from './test-files.mjs'

/**
 * Runs test files in one run of tap and tells how they went: each file as it ends, in full if it failed; then each suite's
 * time, what was skipped, and as the last line the totals.
 *
 * @param {{ root: string, files: readonly string[], args: readonly string[], env: NodeJS.ProcessEnv,
 *   onLine?: (line: string) => void, endsOnSignal?: boolean }} o - `onLine` takes what tap writes; `endsOnSignal`: a signal that
 *   ends this process ends the tests at once, with all that they have started. Tap alone would let them run to their end.
 * @returns {Promise<number>} 0 only if something ran, nothing failed and tap was content with the coverage.
 */
export async function runTap(o) {
  const startedMs = performance.now()
  const output = new TapOutput()
  const suites = new Map()
  const tap = join(o.root, 'node_modules', 'tap', 'dist', 'esm', 'run.mjs')
  let block = []
  let lines
  const code = await runChild(
    process.execPath,
    [tap, 'run', '--reporter=tap', '--no-color', ...o.args, ...o.files],
    {
      cwd: o.root,
      env: o.env,
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: o.endsOnSignal ?? false,
    },
    (child) => {
      lines = createInterface({ input: child.stdout })
      lines.on('line', (line) => {
        block.push(line)
        o.onLine?.(line)
        const ended = output.take(line)
        if (ended === undefined) return
        reportFile(ended, block)
        block = []
        noteSuite(suites, ended)
      })
    },
  )
  return report({ output, suites, code, totalMs: performance.now() - startedMs })
}

function reportFile({ file, isOk, ms }, block) {
  if (!isOk) console.log(block.join('\n'))
  console.log(`${isOk ? 'ok  ' : 'FAIL'}  ${file}  ${seconds(ms)}`)
}

function noteSuite(suites, { file, isOk, ms }) {
  const name = suiteOf(file)
  const suite = suites.get(name) ?? { files: 0, failed: 0, ms: 0 }
  suite.files += 1
  suite.failed += isOk ? 0 : 1
  suite.ms += ms
  suites.set(name, suite)
}

function report({ output, suites, code, totalMs }) {
  const totals = output.totals ?? { passed: 0, failed: 0, skipped: 0 }
  console.log(`\n${output.trailer.filter((line) => line.includes('|')).join('\n')}\n`)
  for (const [name, suite] of [...suites].toSorted(([one], [other]) => (one < other ? -1 : 1))) {
    const failed = suite.failed > 0 ? `, ${suite.failed} FAILED` : ''
    console.log(`suite ${name}: ${seconds(suite.ms)}, ${suite.files} files${failed}`)
  }
  console.log(`total: ${seconds(totalMs)}\n`)
  for (const skipped of output.skipped) console.log(`skipped: ${skipped}`)
  const problem = findProblem(output, totals, code)
  if (problem !== undefined) console.log(problem)
  console.log(renderTotals(totals))
  return problem === undefined ? 0 : code || 1
}

function findProblem(output, totals, code) {
  if (output.totals === undefined)
    return `tap itself ended with exit code ${code} and gave no totals`
  if (totals.failed > 0) return 'tests failed'
  if (totals.passed === 0) return 'no assertion ran'
  if (code !== 0)
    return `tap ended with exit code ${code}: the coverage is below the gate of .taprc`
  return undefined
}

function seconds(ms) {
  return `${(ms / 1000).toFixed(1)} s`
}
