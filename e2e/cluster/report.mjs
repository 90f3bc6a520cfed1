const SAMPLE_MS = 500
const MIB = 1024 * 1024

/** How long the parts of a run took, and the most memory that something used in each. */
export class Phases {
  #usedMemory
  #rows = []

  /** @param {() => number} usedMemory - in bytes; asked now and then. */
  constructor(usedMemory) {
    this.#usedMemory = usedMemory
  }

  /** Runs a phase; gives back what the work gives. A phase that fails is reported too. */
  async run(name, work) {
    const row = { name, ms: 0, bytes: this.#usedMemory() }
    this.#rows.push(row)
    const sinceMs = performance.now()
    const sample = () => {
      row.bytes = Math.max(row.bytes, this.#usedMemory())
    }
    const timer = setInterval(sample, SAMPLE_MS)
    try {
      return await work()
    } finally {
      clearInterval(timer)
      sample()
      row.ms = performance.now() - sinceMs
    }
  }

  render() {
    const all = { name: 'all', ms: this.#rows.reduce((sum, { ms }) => sum + ms, 0), bytes: 0 }
    const rows = [...this.#rows, all].map(({ name, ms, bytes }) => {
      return [name, seconds(ms), bytes === 0 ? '' : `${Math.round(bytes / MIB)} MiB`]
    })
    return toTable([['phase', 'time', 'memory of the node'], ...rows])
  }
}

/** What the tests have shown: the second level of their names, from tap's own lines. */
export class Shown {
  #rows = []

  take(line) {
    const [, not, name, ms] =
      /^ {8}(not )?ok \d+ - (.+?) # time=([\d.]+)ms$/.exec(line) ??
      /^ {4}(not )?ok \d+ - (.+?) # SKIP (.*)$/.exec(line) ??
      []
    if (name === undefined) return
    const time = Number(ms)
    if (Number.isNaN(time)) this.#rows.push(['skipped', `${name}: ${ms}`, ''])
    else this.#rows.push([not === undefined ? 'ok' : 'FAILED', name, seconds(time)])
  }

  render() {
    return toTable([['', 'what was shown', 'time'], ...this.#rows])
  }
}

function seconds(ms) {
  return `${(ms / 1000).toFixed(1)} s`
}

/** Columns of texts; the last ones, which are figures, to the right. */
function toTable(rows) {
  const [head] = rows
  const widths = head.map((_, i) => Math.max(...rows.map((row) => row[i].length)))
  const isFigure = (i) => i > 0 && i >= head.length - (head[0] === '' ? 1 : 2)
  return rows
    .map((row) =>
      row.map((text, i) => (isFigure(i) ? text.padStart(widths[i]) : text.padEnd(widths[i]))),
    )
    .map((row) => row.join('  ').trimEnd())
    .join('\n')
}
