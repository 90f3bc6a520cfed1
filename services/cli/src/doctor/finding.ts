import { printable } from '@tutti/chassis'

/** What was looked at, and what came of it. */
export interface Finding {
  readonly check:
    | 'node'
    | 'onnxruntime'
    | 'python'
    | 'pytorch'
    | 'shared memory'
    | 'gpu'
    | 'port'
    | 'model'
  /** ok: it is there. missing: something needs it. note: it is not there, and nothing here needs it. */
  readonly status: 'ok' | 'missing' | 'note'
  readonly found: string
  /** What to do, unless it is there. */
  readonly mending?: string
  /** Models that need it. */
  readonly models?: readonly string[]
}

/** Names of models in a line of text; JSON has all. */
const MOST_NAMES = 5

/** As text, one or two lines each; as JSON, one object. Ends with a line end. */
export function renderFindings(findings: readonly Finding[], format: 'text' | 'json'): string {
  const missing = findings.filter(({ status }) => status === 'missing').length
  if (format === 'json') {
    return `${JSON.stringify({ ok: missing === 0, findings }, undefined, 2)}\n`
  }
  const summary =
    missing === 0
      ? 'nothing is missing'
      : `${missing} ${missing === 1 ? 'thing is' : 'things are'} missing`
  return [...findings.map(renderFinding), summary, ''].join('\n')
}

function renderFinding({ check, status, found, mending, models = [] }: Finding): string {
  const names = models.slice(0, MOST_NAMES)
  const more = models.length > names.length ? ` and ${models.length - names.length} more` : ''
  const needed = names.length === 0 ? '' : ` (for ${names.join(', ')}${more})`
  const line = printable(`${status.padEnd(7)}  ${check}: ${found}${needed}`)
  return mending === undefined ? line : `${line}\n         -> ${printable(mending)}`
}
