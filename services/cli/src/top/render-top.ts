import { printable } from '@tutti/chassis'
import { countCharacters, cutToWidth, fitText, toColumns } from '@tutti/command-line/results'
import { formatMs, formatRate } from '@tutti/console'
import type { ModelRow } from './model-rows.ts'
import type { TopReading } from './reading.ts'

export interface Size {
  readonly columns: number
  readonly rows: number
}

/** The content of the screen: the models, or why there is no reading. */
export interface TopView {
  readonly url: string
  readonly reading: TopReading | undefined
  readonly rows: readonly ModelRow[]
  /** Reason for which the server gave no reading; undefined if it gave one. */
  readonly problem: string | undefined
}

interface Column {
  readonly title: string
  readonly show: (row: ModelRow) => string
  /** Columns with higher numbers give way first on a narrow screen. */
  readonly priority: number
}

const COLUMN_CHARACTERS = 9
const LEAST_NAME = 16
const UNKNOWN = '–'
const MARK = '*'
const LEGEND = `${MARK} time to the first response, in the last interval`

const COLUMNS: readonly Column[] = [
  { title: 'req/s', priority: 0, show: ({ rates }) => formatRate(rates?.requestsPerSecond) },
  { title: 'fail/s', priority: 1, show: ({ rates }) => formatRate(rates?.failuresPerSecond) },
  { title: 'pending', priority: 3, show: ({ pending }) => formatCount(pending, 0) },
  { title: 'inflight', priority: 6, show: ({ inFlight }) => formatCount(inFlight, 1) },
  { title: 'mean', priority: 2, show: ({ rates }) => formatMs(rates?.requestMs) },
  { title: 'queue', priority: 7, show: ({ rates }) => formatMs(rates?.queueMs) },
  { title: 'compute', priority: 8, show: ({ rates }) => formatMs(rates?.computeMs) },
  { title: 'p50', priority: 5, show: (row) => quantile(row.p50Ms, row.firstResponseP50Ms) },
  { title: 'p99', priority: 4, show: (row) => quantile(row.p99Ms, row.firstResponseP99Ms) },
]

/**
 * Renders the lines of the table, without line ends.
 *
 * @param size - size of the screen, to which the lines are cut; all lines and columns if absent.
 */
export function renderTop(view: TopView, size?: Size): readonly string[] {
  const names = view.rows.map(nameOf)
  const longest = Math.max(LEAST_NAME, ...names.map(countCharacters))
  const width = size?.columns ?? longest + COLUMNS.length * COLUMN_CHARACTERS
  const columns = columnsFor(width)
  const nameWidth = Math.min(longest, Math.max(1, width - columns.length * COLUMN_CHARACTERS))
  const line = (name: string, texts: readonly string[]): string =>
    fitText(name, nameWidth) + toColumns(texts, COLUMN_CHARACTERS)
  const head = [
    headOf(view),
    view.rows.some(isMarked) ? LEGEND : '',
    line(
      'model',
      columns.map(({ title }) => title),
    ),
  ]
  const room = size === undefined ? Number.POSITIVE_INFINITY : size.rows - head.length
  const count = view.rows.length <= room ? view.rows.length : Math.max(0, room - 1)
  const lines = view.rows.slice(0, count).map((row, i) =>
    line(
      names[i] ?? '',
      columns.map(({ show }) => show(row)),
    ),
  )
  const left = view.rows.length - count
  const all = [...head, ...lines, ...(left > 0 ? [`and ${left} more`] : [])]
  return size === undefined
    ? all
    : all.slice(0, size.rows).map((text) => cutToWidth(text, size.columns))
}

/** Formats a quantile: for a stream the time to its first response stands in for that of the request. */
function quantile(requestMs: number | undefined, firstResponseMs: number | undefined): string {
  const isStream = requestMs === undefined && firstResponseMs !== undefined
  return isStream ? formatMs(firstResponseMs) + MARK : formatMs(requestMs)
}

function isMarked({ p50Ms, firstResponseP50Ms }: ModelRow): boolean {
  return p50Ms === undefined && firstResponseP50Ms !== undefined
}

function columnsFor(width: number): readonly Column[] {
  const most = Math.max(0, Math.floor((width - LEAST_NAME) / COLUMN_CHARACTERS))
  return COLUMNS.filter(({ priority }) => priority < most)
}

function nameOf({ model, namespace, version }: ModelRow): string {
  const name = namespace === undefined ? model : `${namespace}::${model}`
  return printable(version === '1' ? name : `${name} ${version}`)
}

function headOf({ url, reading, rows, problem }: TopView): string {
  if (problem !== undefined) return printable(`${url}: no reading: ${problem}`)
  const gauge = (name: string): number => reading?.gauges.get(name) ?? Number.NaN
  const facts = [
    `${rows.length} ${rows.length === 1 ? 'model' : 'models'}`,
    `process ${formatBytes(gauge('process_resident_memory_bytes'))}`,
    `host ${formatBytes(gauge('nv_cpu_memory_used_bytes'))} of ${formatBytes(gauge('nv_cpu_memory_total_bytes'))}`,
    `CPU ${formatShare(gauge('nv_cpu_utilization'))}`,
  ]
  return printable(`${url}: ${facts.join(', ')}`)
}

function formatCount(count: number | undefined, decimals: number): string {
  return count !== undefined && isKnown(count) ? count.toFixed(decimals) : UNKNOWN
}

/** Tells whether a figure is known: what a server says of itself may be no number, or one that makes no sense. */
function isKnown(figure: number): boolean {
  return Number.isFinite(figure) && figure >= 0
}

function formatShare(share: number): string {
  return isKnown(share) ? `${(share * 100).toFixed(0)} %` : UNKNOWN
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

function formatBytes(bytes: number): string {
  if (!isKnown(bytes)) return UNKNOWN
  const power = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10))
  const value = bytes / 1024 ** power
  return `${value.toFixed(value < 10 && power > 0 ? 1 : 0)} ${UNITS[power]}`
}
