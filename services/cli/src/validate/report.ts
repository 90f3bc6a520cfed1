import type { Problem } from '../manifests/parse-manifests.ts'

/** What `tutti validate` found. */
export interface Report {
  /** Manifests that fit their schema. */
  readonly checked: number
  readonly foreign: number
  readonly problems: readonly Problem[]
  /** What is no error: warnings, and Ensembles whose models are not known. */
  readonly notes: readonly Problem[]
}

/** As text, a line each; as JSON, one object. Ends with a line end. */
export function renderReport(report: Report, format: 'text' | 'json'): string {
  if (format === 'json') {
    return `${JSON.stringify({ valid: report.problems.length === 0, ...report }, undefined, 2)}\n`
  }
  const lines = [...report.problems, ...report.notes].map(renderProblem)
  return [...lines, summary(report), ''].join('\n')
}

/** As a line, without its end. */
export function renderProblem({
  file,
  line,
  column,
  resource,
  path,
  reason,
  message,
}: Problem): string {
  const where = [`${file}:${line}:${column}`, resource, path].filter(Boolean).join(': ')
  return `${where}: ${message} (${reason})`
}

function summary({ checked, foreign, problems, notes }: Report): string {
  const counts = [
    count(checked, 'Model or Ensemble', 'Models and Ensembles'),
    count(problems.length, 'error', 'errors'),
    ...(notes.length === 0 ? [] : [count(notes.length, 'note', 'notes')]),
    ...(foreign === 0
      ? []
      : [`${count(foreign, 'other resource', 'other resources')} not looked at`]),
  ]
  return counts.join(', ')
}

function count(n: number, one: string, many: string): string {
  return `${n === 0 ? 'no' : n} ${n === 1 ? one : many}`
}
