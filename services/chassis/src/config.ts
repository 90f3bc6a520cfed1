import { assert, ServeError } from '@tutti/errors'
import { z } from 'zod'
import { Secret } from './secret.ts'
import { renderTable } from './table.ts'

/** What a setting's `.meta({...})` says beside zod's `description`. */
export interface SettingMeta {
  /** Name of the environment variable. */
  readonly env: string
  readonly description: string
  /** `ms`, `bytes`, ...; absent if it has none. */
  readonly unit?: string
}

/** A setting as documentation shows it. */
export interface SettingRow {
  readonly env: string
  /** As text; `-` if there is none and the setting may be absent, `required` if it may not. */
  readonly default: string
  readonly unit: string
  readonly description: string
}

/** One flat object, each field with `.meta({ env, description, unit? })` and a default where it has one. */
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

/** People know a setting by its variable, so that is what the report names. */
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

/** A setting whose value must not be printed. */
export const secretSetting = z.string().transform((text) => new Secret(text))

/** The settings of a schema in its order, for documentation. */
export function describeSettings(schema: SettingSchema): readonly SettingRow[] {
  return Object.values<z.ZodType>(schema.shape).map((field) => {
    const { env, description, unit } = metaOf(field)
    return { env, default: defaultOf(field), unit: unit ?? '', description }
  })
}

/** The settings as the Markdown table of a README, which a test holds equal to the schema. */
export function renderSettingTable(schema: SettingSchema): string {
  const rows = describeSettings(schema).map((row) => [
    `\`${row.env}\``,
    row.default,
    row.unit,
    row.description,
  ])
  return renderTable(['variable', 'default', 'unit', 'meaning'], rows)
}

function metaOf(field: z.ZodType): SettingMeta {
  const meta: Record<string, unknown> = { ...field.meta() }
  const { env, description, unit } = meta
  assert(typeof env === 'string', 'a setting has no meta.env')
  assert(typeof description === 'string', `setting ${env} has no description`)
  assert(unit === undefined || typeof unit === 'string', `setting ${env}: unit is no text`)
  return unit === undefined ? { env, description } : { env, description, unit }
}

function defaultOf(field: z.ZodType): string {
  const absent = field.safeParse(undefined)
  if (!absent.success) return 'required'
  if (absent.data === undefined || absent.data === '') return '-'
  return typeof absent.data === 'string' ? absent.data : JSON.stringify(absent.data)
}
