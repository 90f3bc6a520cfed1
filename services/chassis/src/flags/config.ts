import { assert, ServeError } from '@tutti/errors'
import { z } from 'zod'
import { renderTable } from '../text/table.ts'

/** One flat object, each field with `.meta({ env, description })` and a default where it has one. */
export type SettingSchema = z.ZodObject

/**
 * Reads settings from an environment. An empty variable counts as absent.
 *
 * @returns frozen; keys are those of the schema.
 * @throws ServeError SETTING_INVALID that names each refused variable.
 */
export function loadConfig<S extends SettingSchema>(
  schema: S,
  env: Readonly<Record<string, string | undefined>>,
): Readonly<z.infer<S>> {
  const names = new Map<PropertyKey, string>()
  const given: Record<string, string> = {}
  for (const [key, field] of Object.entries<z.ZodType>(schema.shape)) {
    const name = metaOf(field).env
    names.set(key, name)
    const value = env[name]
    if (value !== undefined && value !== '') given[key] = value
  }
  const parsed = schema.safeParse(given)
  if (parsed.success) return Object.freeze(parsed.data)
  throw toSettingError(parsed.error, names)
}

/** Makes the error of a setting. It names the variable, by which people know the setting. */
function toSettingError(error: z.ZodError, names: ReadonlyMap<PropertyKey, string>): ServeError {
  const issues = error.issues.map((issue) => ({
    ...issue,
    path: issue.path.map((part, at) => (at === 0 ? (names.get(part) ?? part) : part)),
  }))
  const fields = [...new Set(issues.map((issue) => String(issue.path[0])))]
  return new ServeError('SETTING_INVALID', z.prettifyError(new z.ZodError(issues)), {
    details: { field: fields.join(', ') },
  })
}

/** Renders the settings as a Markdown table for a README. A test holds the README equal to the schema. */
export function renderSettingTable(schema: SettingSchema): string {
  const rows = Object.values<z.ZodType>(schema.shape).map((field) => {
    const { env, description } = metaOf(field)
    return [`\`${env}\``, defaultOf(field), description]
  })
  return renderTable(['variable', 'default', 'meaning'], rows)
}

function metaOf(field: z.ZodType): { readonly env: string; readonly description: string } {
  const { env, description }: Record<string, unknown> = { ...field.meta() }
  assert(typeof env === 'string', 'a setting has no meta.env')
  assert(typeof description === 'string', `setting ${env} has no description`)
  return { env, description }
}

/** Renders the default of a setting: `-` if it has none and may be absent, `required` if it may not. */
function defaultOf(field: z.ZodType): string {
  const absent = field.safeParse(undefined)
  if (!absent.success) return 'required'
  if (absent.data === undefined || absent.data === '') return '-'
  return typeof absent.data === 'string' ? absent.data : JSON.stringify(absent.data)
}
