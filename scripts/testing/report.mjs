import { renderTotals } from './tap-output.mjs'
import { suiteOf } from './test-files.mjs'

/** A comment of a subtest; those of tap name the subtest. */
const COMMENT = /^\s+# (?!Subtest: )/

/** The report that a run of tests prints: each process as it ends, and at the end suites, skipped and flaky files, and totals. */
export class Report {
  /** Output of the process of each file that failed. */
  #failures = new Map()
  /** Assertions of each file in its last run. */
  #counts = new Map()
  #notRun = []
  #flaky = []
  #suites = new Map()
  #skipped = new Set()
  #startedMs = performance.now()
  #print
  #hasComments

  /**
   * @param {(text: string) => void} [print]
   * @param {boolean} [hasComments] - what subtests that pass say in comments is printed too.
   */
  constructor(print = console.log, hasComments = false) {
    this.#print = print
    this.#hasComments = hasComments
  }

  /** The files to run once more, or at last. */
  get unsettled() {
    return [...this.#failures.keys(), ...this.#notRun]
  }

  /** @param {import('./run-process.mjs').Outcome} outcome - of a first run. */
  add(outcome) {
    const { files, failed, notRun, lines, ms } = outcome
    if (failed.size > 0) this.#print(lines.join('\n'))
    for (const file of failed) this.#failures.set(file, lines)
    this.#notRun.push(...notRun)
    const [first] = files
    const name = files.length === 1 ? first : `${suiteOf(first)} (${files.length} files)`
    const isOk = failed.size === 0
    const comments = isOk && this.#hasComments ? lines.filter((line) => COMMENT.test(line)) : []
    for (const comment of comments) this.#print(comment)
    this.#print(`${isOk ? 'ok  ' : 'FAIL'}  ${name}  ${seconds(ms)}`)
    this.#note(outcome, first, files.length)
  }

  /** @param {import('./run-process.mjs').Outcome} outcome - of a file that was unsettled, alone. */
  settle(file, outcome) {
    const isOk = outcome.failed.size === 0
    if (!isOk) this.#print(outcome.lines.join('\n'))
    this.#print(`${isOk ? 'ok  ' : 'FAIL'}  ${file}, alone  ${seconds(outcome.ms)}`)
    this.#note(outcome, file, 0)
    if (isOk && this.#failures.has(file)) this.#flaky.push(file)
  }

  /**
   * Prints the end of the report.
   *
   * @param {string} [problem] - why the run fails even if all tests passed.
   * @returns {number} the exit code.
   */
  print(problem) {
    this.#print('')
    for (const [name, suite] of [...this.#suites].toSorted(([one], [two]) => (one < two ? -1 : 1)))
      this.#print(`suite ${name}: ${seconds(suite.ms)}, ${suite.files} files`)
    this.#print(`total: ${seconds(performance.now() - this.#startedMs)}\n`)
    for (const skipped of this.#skipped) this.#print(`skipped: ${skipped}`)
    for (const file of this.#flaky) {
      this.#print(`flaky: ${file}`)
      this.#print(firstFailure(file, this.#failures.get(file)).replaceAll(/^/gm, '    '))
    }
    const totals = { passed: 0, failed: 0, skipped: 0 }
    for (const counts of this.#counts.values())
      for (const name of Object.keys(totals)) totals[name] += counts[name]
    const reason =
      totals.failed > 0 ? 'tests failed' : totals.passed === 0 ? 'no assertion ran' : problem
    if (reason !== undefined) this.#print(reason)
    this.#print(renderTotals(totals))
    return reason === undefined ? 0 : 1
  }

  #note({ ms, counts, skipped }, file, count) {
    for (const one of skipped) this.#skipped.add(one)
    for (const [counted, assertions] of counts) this.#counts.set(counted, assertions)
    const name = suiteOf(file)
    const suite = this.#suites.get(name) ?? { files: 0, ms: 0 }
    this.#suites.set(name, { files: suite.files + count, ms: suite.ms + ms })
  }
}

/** The first test point of a file that failed, with its diagnostics; else the last lines, as of a process that died. */
function firstFailure(file, lines) {
  // A process of one file does not name it.
  const own = lines.slice(lines.indexOf(`# file: ${file}`) + 1)
  const first = own.findIndex((line) => /^ *not ok (?!.* # (SKIP|TODO))/.test(line))
  return (first < 0 ? own.slice(-20) : own.slice(first, first + 40)).join('\n')
}

function seconds(ms) {
  return `${(ms / 1000).toFixed(1)} s`
}
