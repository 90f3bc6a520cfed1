import { printable, renderJson } from '@tutti/chassis'
import { z } from 'zod'
import { listOf } from '../result-schema.ts'

/** What was looked at, and what came of it. */
const Finding = z.object({
  check: z.enum([
    'node',
    'onnxruntime',
    'python',
    'pytorch',
    'shared memory',
    'gpu',
    'port',
    'model',
  ]),
  status: z.enum(['ok', 'missing', 'note']).meta({
    description:
      'ok: it is there. missing: something needs it. note: good to know, and no fault: what is not there and not needed, or a port that is taken.',
  }),
  found: z.string(),
  mending: z.string().exactOptional().meta({ description: 'What to do, unless it is there.' }),
  models: listOf(z.string()).exactOptional().meta({ description: 'Models that need it.' }),
})
export type Finding = z.infer<typeof Finding>

/** What `tutti doctor` prints as JSON. */
export const DoctorResult = z
  .object({
    ok: z.boolean().meta({ description: 'Nothing is missing.' }),
    findings: listOf(Finding),
  })
  .meta({ title: 'Result of tutti doctor' })
type DoctorResult = z.infer<typeof DoctorResult>

/** Names of models in a line of text; JSON has all. */
const MOST_NAMES = 5

/** As text, one or two lines each; as JSON, one object. Ends with a line end. */
export function renderFindings(findings: readonly Finding[], format: 'text' | 'json'): string {
  const missing = findings.filter(({ status }) => status === 'missing').length
  if (format === 'json') {
    const result: DoctorResult = { ok: missing === 0, findings }
    return renderJson(result)
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
