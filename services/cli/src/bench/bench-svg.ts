import { element, label, picture } from '../plot/svg.ts'
import type { BenchResult } from './bench-result.ts'
import { formatCount, labelOfTarget } from './bench-text.ts'
import { describeLoad } from './load.ts'

const WIDTH = 1000
const TOP = 64
const PLOT = { x: 70, width: 520, height: 300 }
const BARS = { x: 660, width: 300, most: 34 }
const LINE = 18
const COLOURS = [
  '#2f6fde',
  '#d08a1d',
  '#2f9e62',
  '#c0392b',
  '#7d5ba6',
  '#3a9fb5',
  '#8a6d3b',
  '#5c6773',
]
const DASHES = ['none', '6 3', '2 2']
const GRID = '#e3e7ee'

/** What is drawn for one result. */
interface Series {
  readonly result: BenchResult
  readonly name: string
  readonly colour: string
  readonly dash: string
}

/** Latency by percentile, and throughput, with a line and a bar for each target and load. */
export function drawBench(o: {
  readonly model: string
  readonly urls: readonly string[]
  readonly results: readonly BenchResult[]
}): string {
  const { model, urls, results } = o
  const series = results.map((result, i): Series => {
    const colour = COLOURS[i % COLOURS.length] ?? '#000000'
    const dash = DASHES[Math.floor(i / COLOURS.length) % DASHES.length] ?? 'none'
    return { result, name: `${result.target}, ${describeLoad(result.load)}`, colour, dash }
  })
  const bottom = TOP + PLOT.height + 56
  const title = `${model}: latency and throughput`
  const content = [
    label(title, { x: 16, y: 28, 'font-size': 16 }, 110),
    drawCurves(series),
    drawBars(series),
    ...series.map((one, i) => drawLegend(one, bottom + i * LINE)),
    ...urls.map((url, i) =>
      label(`${labelOfTarget(i)}: ${url}`, { x: BARS.x, y: bottom + i * LINE + 10 }, 48),
    ),
  ]
  const height = bottom + Math.max(series.length, urls.length) * LINE + 16
  return picture({ width: WIDTH, height, title }, content.join('\n'))
}

/** Places of latencies and percentiles, both logarithmic. */
function scaleOf(series: readonly Series[]) {
  const points = series.flatMap(({ result }) => result.curve)
  const times = points.map(([, ms]) => Math.log10(Math.max(ms, 1e-3)))
  const low = Math.floor(Math.min(0, ...times))
  const high = Math.max(low + 1, Math.ceil(Math.max(low, ...times)))
  const nines = Math.max(1, ...points.map(([x]) => x))
  return {
    low,
    high,
    nines,
    x: (value: number) => PLOT.x + (value / nines) * PLOT.width,
    y: (log: number) => TOP + PLOT.height * (1 - (log - low) / (high - low)),
  }
}

function drawCurves(series: readonly Series[]): string {
  const { low, high, nines, x, y } = scaleOf(series)
  const right = PLOT.x + PLOT.width
  const rows = Array.from({ length: high - low + 1 }, (_, i) => low + i)
  const columns = [0, Math.log10(2), ...Array.from({ length: Math.floor(nines) }, (_, i) => i + 1)]
  const grid = [
    ...rows.map((log) => {
      const text = { x: PLOT.x - 8, y: y(log) + 4, 'text-anchor': 'end' }
      return line([PLOT.x, y(log), right, y(log)]) + label(String(10 ** log), text)
    }),
    ...columns.map((at) => {
      const text = { x: x(at), y: TOP + PLOT.height + 18, 'text-anchor': 'middle' }
      const percent = Number((100 * (1 - 10 ** -at)).toPrecision(8))
      return line([x(at), TOP, x(at), TOP + PLOT.height]) + label(`${percent} %`, text)
    }),
  ]
  const curves = series.map(({ result, colour, dash }) => {
    const points = result.curve
      .map(([at, ms]) => `${x(at).toFixed(1)},${y(Math.log10(Math.max(ms, 1e-3))).toFixed(1)}`)
      .join(' ')
    const stroke = { stroke: colour, 'stroke-width': 2, 'stroke-dasharray': dash }
    return element('polyline', { points, fill: 'none', ...stroke })
  })
  return [
    label('latency in ms, by percentile', { x: PLOT.x, y: TOP - 10 }),
    ...grid,
    ...curves,
  ].join('')
}

function line([x1, y1, x2, y2]: readonly [number, number, number, number]): string {
  return element('line', { x1, y1, x2, y2, stroke: GRID })
}

function drawBars(series: readonly Series[]): string {
  const most = Math.max(1e-9, ...series.map(({ result }) => result.answersPerSecond))
  const step = Math.min(BARS.most, PLOT.height / Math.max(1, series.length))
  const bars = series.map(({ result, colour }, i) => {
    const y = TOP + i * step
    const width = (result.answersPerSecond / most) * (BARS.width - 60)
    const bar = element('rect', { x: BARS.x, y, width, height: step * 0.7, fill: colour })
    const text = { x: BARS.x + width + 6, y: y + step * 0.35 + 4 }
    return bar + label(formatCount(result.answersPerSecond), text)
  })
  return [label('answers per second', { x: BARS.x, y: TOP - 10 }), ...bars].join('')
}

function drawLegend({ result, name, colour, dash }: Series, y: number): string {
  const stroke = { stroke: colour, 'stroke-width': 3, 'stroke-dasharray': dash }
  const mark = element('line', { x1: PLOT.x, y1: y + 6, x2: PLOT.x + 28, y2: y + 6, ...stroke })
  const { failed } = result
  const text = failed === 0 ? name : `${name}: ${failed} failed`
  return mark + label(text, { x: PLOT.x + 36, y: y + 10 }, 70)
}
