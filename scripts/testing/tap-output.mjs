/**
 * Reads what one test process writes, line by line, as TAP 14 of tap's library: how many assertions of each
 * file passed, what was skipped, and which files failed. A process with several files writes `# file: PATH` before each, and
 * `# all files ran` after the last.
 */
export class TapOutput {
  /** Whether the process came to its totals; not if it died. */
  isComplete = false
  /** Whether a process with several files came to the end of the last; true for one file. */
  hasRunAll
  /** Whether something failed outside all tests, which may be the work of a file that ran before. */
  hasStray = false
  /** The assertions of each file that has run: how many passed, failed, and were skipped or are to be written. */
  counts = new Map()
  /** Where each skipped or unfinished test stands: file, names of the tests around it, reason. */
  skipped = []
  /** The files of which a test failed. */
  failed = new Set()
  /** The file that runs now, or the last one that ran. */
  file

  #path = []
  /** By depth, whether the next point there only closes a subtest. */
  #isOpen = []
  #diagnosticIndent

  /** @param {readonly string[]} files - the first runs until a line names another. */
  constructor(files) {
    this.hasRunAll = files.length === 1
    this.#begin(files[0])
  }

  /** @param {string} line - without its line end. */
  take(line) {
    if (this.#isDiagnostic(line)) return
    if (line.startsWith('# file: ')) this.#begin(line.slice('# file: '.length))
    if (line === '# all files ran') this.hasRunAll = true
    if (line.startsWith('# { total: ')) this.isComplete = true
    const opened = /^( *)# Subtest: (.*)$/.exec(line)
    if (opened !== null) this.#enter(opened[1].length / 4, opened[2])
    const point = /^( *)(not )?ok \d+(?: - (.*?))?(?: # (.*))?$/.exec(line)
    if (point !== null) this.#takePoint(point)
  }

  /** Diagnostics stand between `---` and `...`, and may quote anything, even what looks like a test. */
  #isDiagnostic(line) {
    const [, indent, mark] = /^( *)(---|\.\.\.)$/.exec(line) ?? []
    if (this.#diagnosticIndent === undefined) {
      if (mark === '---') this.#diagnosticIndent = indent
      return mark === '---'
    }
    if (mark === '...' && indent === this.#diagnosticIndent) this.#diagnosticIndent = undefined
    return true
  }

  #begin(file) {
    this.file = file
    this.counts.set(file, { passed: 0, failed: 0, skipped: 0 })
  }

  #enter(depth, name) {
    this.#isOpen[depth] = true
    this.#path.length = depth
    this.#path[depth] = name
  }

  #takePoint([, indent, not, name = '', directive = '']) {
    const depth = indent.length / 4
    const [, kind, reason] = /^(SKIP|TODO)\b:? ?(.*)$/i.exec(directive) ?? []
    if (kind !== undefined) {
      const path = [this.file, ...this.#path.slice(0, depth), name].join(' > ')
      this.skipped.push(reason === '' ? path : `${path} (${reason})`)
    }
    if (depth === 0 && not !== undefined && kind === undefined) this.#fail()
    // A subtest counts by what is in it.
    if (!this.#isOpen[depth]) {
      this.counts.get(this.file)[kind ? 'skipped' : not ? 'failed' : 'passed'] += 1
    }
    this.#isOpen[depth] = false
  }

  #fail() {
    this.failed.add(this.file)
    if (!this.#isOpen[0]) this.hasStray = true
  }
}

/** The line that ends a test run, for people and for the programs that read its output. */
export function renderTotals({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
}
