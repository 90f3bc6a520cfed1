import { printable } from '@tutti/chassis'
import { formatMs, type WaterfallRow, waterfallRows } from '@tutti/console'
import { countCharacters, cutToWidth, fitText, toColumns } from '../results/text-table.ts'
import { cutOf, pathOf, type RequestTrace, timeParts } from './request-trace.ts'

const BAR_CHARACTERS = 40
const MOST_LABEL = 32
const COLUMNS = ['begin', 'queue', 'compute', 'transfer', 'all']
const COLUMN_CHARACTERS = 10

/** Renders a trace for a terminal: a line for each step, then the parts of the time. */
export function renderTrace(trace: RequestTrace): string {
  const { model, version, clientMs } = trace
  const rows = waterfallRows(trace)
  const labels = rows.map(labelOf)
  const width = Math.max(...labels.map(countCharacters))
  const path = pathOf(trace)
  const parts = timeParts(trace)
  const nameWidth = Math.max(0, ...parts.map(({ name }) => name.length))
  const cut = cutOf(trace)
  return [
    `${printable(model)}, version ${printable(version)}: ${formatMs(clientMs)}`,
    '',
    `${' '.repeat(width + BAR_CHARACTERS + 2)}${toColumns(COLUMNS, COLUMN_CHARACTERS)}`,
    ...rows.flatMap((row, i) => [
      `${fitText(labels[i] ?? '', width)}  ${drawBar(row)}${toColumns(timesOf(row).map(formatMs), COLUMN_CHARACTERS)}`,
      ...notesOf(row),
    ]),
    '',
    `░ queue  █ compute  ▒ transfer and the rest${path.length > 0 ? '  * critical' : ''}`,
    ...(cut === undefined ? [] : [cut]),
    ...(path.length === 0 ? [] : [`critical path: ${path.map(printable).join(' -> ')}`]),
    '',
    ...parts.map(({ name, ms, share }) => {
      const percent = `${(share * 100).toFixed(0)} %`
      return `${name.padEnd(nameWidth)}${toColumns([formatMs(ms), percent], COLUMN_CHARACTERS)}`
    }),
    '',
  ].join('\n')
}

function labelOf({ label, depth, isCritical }: WaterfallRow): string {
  return `${isCritical ? '*' : ' '} ${'  '.repeat(depth)}${cutToWidth(printable(label), MOST_LABEL)}`
}

/** Lists the begin and the times of a step; one that did not run has none. */
function timesOf({ startMs, times, isPassed }: WaterfallRow): readonly (number | undefined)[] {
  const { queueMs, computeMs, transferMs, allMs } = times
  const none = [undefined, undefined, undefined, undefined]
  return [startMs, ...(isPassed ? none : [queueMs, computeMs, transferMs, allMs])]
}

/** Writes the lines below a step: the reason of its error, and what was done around it. */
function notesOf({ depth, reason, notes }: WaterfallRow): readonly string[] {
  const all = [...(reason === '' ? [] : [`failed: ${reason}`]), ...notes]
  return all.map((note) => `  ${'  '.repeat(depth + 1)}${printable(note)}`)
}

/** Draws the bar of a step, of one character at least; none for a step that did not run. */
function drawBar({ isPassed, bar }: WaterfallRow): string {
  if (isPassed) return ' '.repeat(BAR_CHARACTERS)
  const { from, queue, compute, all } = bar
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
