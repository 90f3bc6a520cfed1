import type { FaultRow } from './run-fault.ts'

const HEAD = [
  'fault',
  'clients get, beside right answers',
  'errors until',
  'longest request (bound)',
  'well again after',
  'lost',
  'duplicated',
]

/** Rows as a table of docs/reliability.md. */
export function renderTable(rows: readonly FaultRow[]): string {
  const lines = [HEAD, HEAD.map(() => '---'), ...rows.map(cellsOf)]
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

function cellsOf(row: FaultRow): readonly string[] {
  return [
    row.fault,
    errorsOf(row.outcomes),
    row.failingMs === 0 ? '-' : seconds(row.failingMs),
    `${seconds(row.longestMs)} (${row.withinMs / 1000} s)`,
    seconds(row.recoveryMs),
    String(row.lost),
    String(row.duplicated),
  ]
}

function errorsOf(outcomes: FaultRow['outcomes']): string {
  const asked = Object.values(outcomes).reduce((sum, count) => sum + count, 0)
  const errors = Object.entries(outcomes)
    .filter(([outcome]) => outcome !== 'right')
    .toSorted(([, a], [, b]) => b - a)
    .map(([outcome, count]) => `${count} \`${shorten(outcome)}\``)
  return errors.length === 0 ? `nothing else (${asked} asked)` : `${errors.join(', ')} of ${asked}`
}

/** Without its code, where that says the same or can be one only. */
function shorten(outcome: string): string {
  const [code = '', reason = code] = outcome.split(' ')
  return reason === code || code === 'UNAVAILABLE' ? reason : `${code} ${reason}`
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}
