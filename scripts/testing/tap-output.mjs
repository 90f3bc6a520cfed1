/**
 * Reads TAP 14 as tap's runner writes it, line by line: which test files ended how, what was skipped, and the runner's own
 * totals, which count assertions, and a file that crashed or timed out as one failure.
 */
export class TapOutput {
  /** The runner's totals; undefined until its last lines, so also if it died. */
  totals
  /** Where each skipped or unfinished test stands: file, names of the tests around it, reason. */
  skipped = []
  /** The lines behind the last test file: the coverage table and totals. */
  trailer = []

  #path = []
  #skippedInFile = []
  #diagnosticIndent

  /**
   * @param {string} line - without its line end.
   * @returns {{ file: string, isOk: boolean, ms: number } | undefined} the test file that this line ends.
   */
  take(line) {
    this.trailer.push(line)
    if (this.#isDiagnostic(line)) return undefined
    if (line.startsWith('# { total: ')) this.totals = toTotals(line)
    const opened = /^( *)# Subtest: (.*)$/.exec(line)
    if (opened !== null) this.#enter(opened[1].length / 4, opened[2])
    const point = /^( *)(not )?ok \d+(?: - (.*?))?(?: # (.*))?$/.exec(line)
    if (point === null) return undefined
    const [, indent, not, name = '', directive = ''] = point
    const depth = indent.length / 4
    this.#noteSkip(depth, name, directive)
    return depth === 0 ? this.#endFile(name, not === undefined, directive) : undefined
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

  #enter(depth, name) {
    this.#path.length = depth
    this.#path[depth] = name
  }

  #noteSkip(depth, name, directive) {
    const [, kind, reason] = /^(SKIP|TODO)\b:? ?(.*)$/i.exec(directive) ?? []
    if (kind === undefined) return
    const where = [...this.#path.slice(0, depth), name].join(' > ')
    this.#skippedInFile.push(reason === '' ? where : `${where} (${reason})`)
  }

  #endFile(file, isOk, directive) {
    const ms = Number(/^time=([\d.]+)ms$/.exec(directive)?.[1] ?? 0)
    this.skipped.push(...this.#skippedInFile)
    this.#skippedInFile = []
    this.#path = []
    this.trailer = []
    return { file, isOk, ms }
  }
}

/** `# { total: 15, pass: 7, fail: 4, todo: 1, skip: 3 }`; what is 0 is left out there. */
function toTotals(line) {
  const count = (name) => Number(new RegExp(`\\b${name}: (\\d+)`).exec(line)?.[1] ?? 0)
  return { passed: count('pass'), failed: count('fail'), skipped: count('skip') + count('todo') }
}

/** The line that ends a test run, for people and for whoever reads its output. */
export function renderTotals({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
}
