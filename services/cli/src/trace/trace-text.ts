import { printable } from '@tutti/chassis'
import { formatMs, type WaterfallRow, waterfallRows } from '@tutti/console'
import { cutOf, pathOf, type RequestTrace, timeParts } from './request-trace.ts'

const BAR_CHARACTERS = 40
const MOST_LABEL = 32
const COLUMNS = ['begin', 'queue', 'compute', 'transfer', 'all']
const COLUMN_CHARACTERS = 9

/** A trace for a terminal: a line for each step, and where the time went. */
export function renderTrace(trace: RequestTrace): string {
  const { model, version, clientMs } = trace
  const rows = waterfallRows(trace)
  const labels = rows.map(labelOf)
  const width = Math.max(...labels.map((label) => Array.from(label).length))
  const path = pathOf(trace)
  const parts = timeParts(trace)
  const nameWidth = Math.max(0, ...parts.map(({ name }) => name.length))
  const cut = cutOf(trace)
  return [
    `${printable(model)}, version ${printable(version)}: ${formatMs(clientMs)}`,
    '',
    `${' '.repeat(width + BAR_CHARACTERS + 2)}${toColumns(COLUMNS)}`,
    ...rows.map((row, i) => {
      const { queueMs, computeMs, transferMs, allMs } = row.times
      const times = [row.startMs, queueMs, computeMs, transferMs, allMs]
      return `${labels[i]?.padEnd(width)}  ${drawBar(row.bar)}${toColumns(times.map(formatMs))}`
    }),
    '',
    `░ queue  █ compute  ▒ transfer and the rest${path.length > 0 ? '  * critical' : ''}`,
    ...(cut === undefined ? [] : [cut]),
    ...(path.length === 0 ? [] : [`critical path: ${path.map(printable).join(' -> ')}`]),
    '',
    ...parts.map(({ name, ms, share }) => {
      const percent = `${(share * 100).toFixed(0)} %`
      return `${name.padEnd(nameWidth)}${toColumns([formatMs(ms), percent])}`
    }),
    '',
  ].join('\n')
}

function labelOf({ label, depth, isCritical }: WaterfallRow): string {
  const all = Array.from(printable(label))
  const cut = all.length > MOST_LABEL ? [...all.slice(0, MOST_LABEL - 1), '…'] : all
  return `${isCritical ? '*' : ' '} ${'  '.repeat(depth)}${cut.join('')}`
}

function toColumns(texts: readonly string[]): string {
  return texts.map((text) => text.padStart(COLUMN_CHARACTERS + 1)).join('')
}

/** A step that is shorter than a character has one all the same. */
function drawBar({ from, queue, compute, all }: WaterfallRow['bar']): string {
  const at = (share: number): number => Math.round(share * BAR_CHARACTERS)
  const begin = Math.min(at(from), BAR_CHARACTERS - 1)
  const end = Math.max(at(from + all), begin + 1)
  return Array.from({ length: BAR_CHARACTERS }, (_, i) => {
    if (i < begin || i >= end) return ' '
    const middle = (i + 0.5) / BAR_CHARACTERS - from
    if (middle < queue) return '░'
    return middle < queue + compute ? '█' : '▒'
  }).join('')
}
