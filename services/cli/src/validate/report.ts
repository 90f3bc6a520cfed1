import { renderJson } from '@tutti/chassis'
import { readonlyListOf } from '@tutti/command-line/results'
import { z } from 'zod'
import { Problem } from '../manifests/parse-manifests.ts'

/** The result that `tutti validate` prints as JSON. */
export const ValidateResult = z
  .object({
    valid: z.boolean().meta({ description: 'There are no problems.' }),
    checked: z
      .int()
      .meta({ description: 'Manifests that fit their schema, or models of the repositories.' }),
    foreign: z.int().meta({ description: 'Resources of other API groups, which are not checked.' }),
    problems: readonlyListOf(Problem),
    notes: readonlyListOf(Problem).meta({
      description: 'What is no error: warnings, and Ensembles whose models are not known.',
    }),
  })
  .meta({ title: 'Result of tutti validate' })
type ValidateResult = z.infer<typeof ValidateResult>

/** The findings of `tutti validate`. */
export type Report = Omit<ValidateResult, 'valid'>

/** Renders a report: as text with a line for each problem, or as one JSON object. Both end with a line end. */
export function renderReport(report: Report, format: 'text' | 'json'): string {
  if (format === 'json') {
    const result: ValidateResult = { valid: report.problems.length === 0, ...report }
    return renderJson(result)
  }
  const lines = [...report.problems, ...report.notes].map(renderProblem)
  return [...lines, summary(report), ''].join('\n')
}

/** Renders a problem as a line, without a line end. */
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
