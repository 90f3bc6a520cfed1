import { printable } from '@tutti/chassis'
import { toColumns } from '@tutti/command-line/results'
import { type BenchResult, QUANTILE_NAMES, type QuantileName } from './bench-result.ts'
import { describeLoad } from './load.ts'

const LOAD_CHARACTERS = 18
const COLUMN_CHARACTERS = 10
const BAR_CHARACTERS = 48
const NAMES: Readonly<Record<QuantileName, string>> = {
  p50: 'p50',
  p90: 'p90',
  p99: 'p99',
  p999: 'p99.9',
  max: 'max',
}
const COLUMNS = ['requests/s', 'failed', 'mean', ...QUANTILE_NAMES.map((name) => NAMES[name])]

/** Renders the model, the duration, the targets, and the head of the table. @param o.urls - URLs of the targets, in order. */
export function renderHead(o: {
  readonly model: string
  readonly seconds: number
  readonly urls: readonly string[]
}): string {
  const { model, seconds, urls } = o
  const targets = urls.map((url, i) => `${labelOfTarget(i)}  ${printable(url)}\n`)
  const head = `${printable(model)}, ${seconds} s for each load; latencies in milliseconds\n`
  const load = 'load'.padEnd(LOAD_CHARACTERS + 2)
  return `${head}${targets.join('')}\n  ${load}${toColumns(COLUMNS, COLUMN_CHARACTERS)}\n`
}

export function labelOfTarget(index: number): string {
  return String.fromCharCode('A'.charCodeAt(0) + index)
}

/** Renders the lines of one load, each with its notes, and a comparison of the targets. */
export function renderRows(results: readonly BenchResult[]): string {
  const lines = results.map(({ target, load, answersPerSecond, failed, latencyMs, notes }) => {
    const times = latencyMs && [latencyMs.mean, ...QUANTILE_NAMES.map((name) => latencyMs[name])]
    const figures = [
      formatCount(answersPerSecond),
      String(failed),
      ...(times ?? []).map(formatTime),
    ]
    const line = `${target} ${describeLoad(load).padEnd(LOAD_CHARACTERS + 2)}${toColumns(figures, COLUMN_CHARACTERS)}`
    return [line, ...notes.map((note) => `    ${printable(note)}`), ''].join('\n')
  })
  return lines.join('') + compare(results)
}

/** Compares the other targets with the first one. */
function compare([first, ...others]: readonly BenchResult[]): string {
  const lines = others.flatMap((other) => {
    if (first?.latencyMs === undefined || other.latencyMs === undefined) return []
    const rate = ratio(other.answersPerSecond, first.answersPerSecond)
    const median = ratio(other.latencyMs.p50, first.latencyMs.p50)
    const tail = ratio(other.latencyMs.p99, first.latencyMs.p99)
    const ratios = `requests/s x${rate}, p50 x${median}, p99 x${tail}`
    return [`    ${other.target} beside ${first.target}: ${ratios}\n`]
  })
  return lines.join('')
}

/** Formats a ratio. A latency may be below what a clock resolves. */
function ratio(value: number, of: number): string {
  return (Math.max(value, 1e-6) / Math.max(of, 1e-6)).toFixed(2)
}

/** Renders the latencies of all loads as bars on a logarithmic scale; '' if nothing was answered. */
export function renderPlot(results: readonly BenchResult[]): string {
  const all = results.flatMap(({ latencyMs }) => (latencyMs ? [latencyMs.p50, latencyMs.max] : []))
  if (all.length === 0) return ''
  const low = Math.floor(Math.log10(Math.max(1e-3, Math.min(...all))))
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...all))))
  const scale = `latency in ms, ${10 ** low} to ${10 ** high}, logarithmic`
  const blocks = results.flatMap(({ target, load, latencyMs }) => {
    if (latencyMs === undefined) return []
    const bars = QUANTILE_NAMES.map((name) => {
      const share = (Math.log10(Math.max(latencyMs[name], 1e-6)) - low) / (high - low)
      return `  ${NAMES[name].padEnd(6)}${drawBar(share)} ${formatTime(latencyMs[name])}\n`
    })
    return [`${target} ${describeLoad(load)}\n`, ...bars]
  })
  return `\n${scale}\n${blocks.join('')}`
}

const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']

function drawBar(share: number): string {
  const eighths = Math.round(Math.min(1, Math.max(0, share)) * BAR_CHARACTERS * 8)
  const bar = '█'.repeat(Math.floor(eighths / 8)) + (EIGHTHS[eighths % 8] ?? '')
  return bar.padEnd(BAR_CHARACTERS)
}

/** Formats milliseconds with at least four digits. */
export function formatTime(ms: number): string {
  if (ms >= 1000) return ms.toFixed(0)
  return ms >= 100 ? ms.toFixed(1) : ms.toFixed(ms >= 10 ? 2 : 3)
}

export function formatCount(perSecond: number): string {
  return perSecond.toFixed(perSecond >= 100 ? 0 : 1)
}
