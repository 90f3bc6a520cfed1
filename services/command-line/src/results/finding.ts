import { printable, renderJson } from '@tutti/chassis'
import { ENGINES } from '@tutti/engines'
import { z } from 'zod'
import { readonlyListOf } from './result-schema.ts'

/** Defines the schema of the JSON that a doctor prints. @param checks - names of the doctor's checks. */
export function defineFindings<const T extends readonly string[]>(title: string, checks: T) {
  const Finding = z.object({
    check: z.enum(checks),
    status: z.enum(['ok', 'missing', 'note']).meta({
      description:
        'ok: it is there. missing: something needs it. note: good to know, and no fault: what is not there and not needed, or a port that is taken.',
    }),
    found: z.string(),
    mending: z.string().exactOptional().meta({ description: 'What to do, unless it is there.' }),
    neededBy: readonlyListOf(z.string())
      .exactOptional()
      .meta({ description: 'Names of models, or of Models and Ensembles, that need it.' }),
  })
  const ok = z.boolean().meta({ description: 'Nothing is missing.' })
  return z.object({ ok, findings: readonlyListOf(Finding) }).meta({ title })
}

/** The result that `tutti doctor` prints as JSON. */
export const DoctorResult = defineFindings('Result of tutti doctor', [
  'node',
  ...ENGINES.map(({ backend }) => backend).toSorted(),
  'shared memory',
  'gpu',
  'port',
  'model',
])
/** The result of one check of this machine. */
export type Finding = z.infer<typeof DoctorResult>['findings'][number]

/**
 * Builds the finding of an absent thing: `missing` if something needs the thing, else a note.
 *
 * @param neededBy - names of its users.
 */
export function absent<T>(
  finding: { readonly check: T; readonly found: string; readonly mending: string },
  neededBy: readonly string[],
) {
  if (neededBy.length === 0) return { ...finding, status: 'note' as const }
  return { ...finding, status: 'missing' as const, neededBy: [...neededBy] }
}

/** Most names in a line of text; JSON has all. */
const MOST_NAMES = 5

type AnyFinding = Omit<Finding, 'check'> & { readonly check: string }

/** Renders findings: as text with one or two lines for each, or as one JSON object. Both end with a line end. */
export function renderFindings(findings: readonly AnyFinding[], format: 'text' | 'json'): string {
  const missing = findings.filter(({ status }) => status === 'missing').length
  if (format === 'json') {
    return renderJson({ ok: missing === 0, findings })
  }
  const summary =
    missing === 0
      ? 'nothing is missing'
      : `${missing} ${missing === 1 ? 'thing is' : 'things are'} missing`
  return [...findings.map(renderFinding), summary, ''].join('\n')
}

function renderFinding({ check, status, found, mending, neededBy = [] }: AnyFinding): string {
  const names = neededBy.slice(0, MOST_NAMES)
  const more = neededBy.length > names.length ? ` and ${neededBy.length - names.length} more` : ''
  const needed = names.length === 0 ? '' : ` (for ${names.join(', ')}${more})`
  const line = printable(`${status.padEnd(7)}  ${check}: ${found}${needed}`)
  return mending === undefined ? line : `${line}\n         -> ${printable(mending)}`
}
