import { formatMs, type WaterfallRow, waterfallRows } from '@tutti/console'
import { element, label, picture } from '../plot/svg.ts'
import { cutOf, pathOf, type RequestTrace, timeParts } from './request-trace.ts'

const WIDTH = 1000
const BARS = { x: 250, width: 400 }
const NUMBERS_X = 720
const NUMBERS_WIDTH = 68
const ROW = 24
const TOP = 76
const COLOURS = { queue: '#d08a1d', compute: '#2f6fde', rest: '#b9c2d0', critical: '#2f6fde' }
const COLUMNS = ['begin', 'queue', 'compute', 'transfer', 'all']

/** A trace as a picture: a bar for each step, and where the time went. */
export function drawTrace(trace: RequestTrace): string {
  const { model, version, clientMs } = trace
  const rows = waterfallRows(trace)
  const title = `${model}, version ${version}: ${formatMs(clientMs)}`
  const path = pathOf(trace)
  const below = [
    ...(path.length === 0 ? [] : [`Critical path: ${path.join(' → ')}`]),
    ...timeParts(trace).map(
      ({ name, ms, share }) => `${name}: ${formatMs(ms)}, ${(share * 100).toFixed(0)} %`,
    ),
    ...[cutOf(trace)].filter((text) => text !== undefined),
  ]
  const bottom = TOP + rows.length * ROW + 16
  const content = [
    label(title, { x: 16, y: 28, 'font-size': 16 }, 110),
    legend(),
    ...COLUMNS.map((text, i) => label(text, numberAt(i, TOP - 10))),
    ...rows.map((row, i) => drawRow(row, TOP + i * ROW)),
    ...below.map((text, i) => label(text, { x: 16, y: bottom + i * 18 }, 150)),
  ]
  const height = bottom + below.length * 18
  return picture({ width: WIDTH, height, title }, content.join('\n'))
}

function legend(): string {
  const kinds = [
    ['queue', COLOURS.queue],
    ['compute', COLOURS.compute],
    ['transfer and the rest', COLOURS.rest],
  ] as const
  return kinds
    .map(([text, fill], i) => {
      const x = BARS.x + i * 90
      const square = element('rect', { x, y: TOP - 19, width: 10, height: 10, fill })
      return square + label(text, { x: x + 15, y: TOP - 10 })
    })
    .join('')
}

function drawRow({ label: name, depth, isCritical, startMs, times, bar }: WaterfallRow, y: number) {
  const { queueMs, computeMs, transferMs, allMs } = times
  const numbers = [startMs, queueMs, computeMs, transferMs, allMs]
  const indent = 16 + depth * 14
  const text = {
    x: indent,
    y: y + 15,
    ...(isCritical && { fill: COLOURS.critical, 'font-weight': 'bold' }),
  }
  const x = BARS.x + bar.from * BARS.width
  const part = (from: number, width: number, fill: string): string =>
    element('rect', {
      x: x + from * BARS.width,
      y: y + 4,
      width: width * BARS.width,
      height: 14,
      fill,
    })
  return [
    label(name, text, Math.floor((BARS.x - indent) / 7.5)),
    part(0, Math.max(bar.all, 1 / BARS.width), COLOURS.rest),
    part(0, bar.queue, COLOURS.queue),
    part(bar.queue, bar.compute, COLOURS.compute),
    ...numbers.map((ms, i) => label(formatMs(ms), numberAt(i, y + 15))),
  ].join('')
}

function numberAt(column: number, y: number) {
  return { x: NUMBERS_X + column * NUMBERS_WIDTH, y, 'text-anchor': 'end' }
}
