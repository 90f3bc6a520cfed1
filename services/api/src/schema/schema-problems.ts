import { nearestName } from '@tutti/errors'
import { z } from 'zod'

/** One thing that a schema refuses. */
export interface SchemaProblem {
  readonly path: readonly PropertyKey[]
  /** The text that says what was got and what is wanted, in one line. */
  readonly message: string
  /** The rule of CEL that is broken, which the CRD has too. */
  readonly rule?: string
}

const LONGEST_VALUE = 64

/** Words an issue of zod as what was got and what is wanted. An issue for which the schema has a text keeps that text. */
export const describeIssue: z.core.$ZodErrorMap = (issue) => {
  const got = `got ${quote(issue.input)}`
  if (issue.code === 'invalid_type') {
    return `${got}, want ${NOUNS[issue.expected] ?? issue.expected}${yamlHint(issue)}`
  }
  if (issue.code === 'invalid_value') return `${got}, want ${oneOf(issue.values.map(String))}`
  if (issue.code === 'invalid_union') return `${got}, want ${oneOf(unionOf(issue.errors))}`
  if (issue.code === 'invalid_format') return `${got}, want what matches ${issue.pattern}`
  if (issue.code === 'too_small')
    return `got ${sizeOf(issue.input)}, want at least ${issue.minimum}`
  if (issue.code === 'too_big') return `got ${sizeOf(issue.input)}, want at most ${issue.maximum}`
  return undefined
}

/** Lists the problems that zod found. Each unknown field is a problem of its own, with a hint at the field that may be meant. */
export function toSchemaProblems(
  schema: z.core.$ZodType,
  { issues }: z.core.$ZodError,
): readonly SchemaProblem[] {
  return issues.flatMap((issue): SchemaProblem[] => {
    const { path, message } = issue
    if (issue.code === 'custom' && typeof issue.params?.['rule'] === 'string') {
      return [{ path, message, rule: issue.params['rule'] }]
    }
    if (issue.code !== 'unrecognized_keys') return [{ path, message }]
    const known = fieldsAt(schema, path)
    return issue.keys.map((key) => ({
      path: [...path, key],
      message: `there is no such field${hintOf(key, known)}`,
    }))
  })
}

/** Joins problems into one line, each with its path. */
export function toProblemText(problems: readonly SchemaProblem[]): string {
  return problems
    .map(({ path, message }) =>
      path.length === 0 ? message : `${z.core.toDotPath([...path])}: ${message}`,
    )
    .join('; ')
}

function hintOf(key: string, known: readonly string[]): string {
  const near = nearestName(key, known)
  return near === undefined ? '' : `; did you mean ${near}?`
}

/** Finds the fields of an object within a schema. */
function fieldsAt(schema: z.core.$ZodType, path: readonly PropertyKey[]): readonly string[] {
  let at: z.core.$ZodType | undefined = withoutOptional(schema)
  for (const key of path) at = at && memberOf(at, key)
  return at instanceof z.ZodObject ? Object.keys(at.shape) : []
}

/**
 * Finds the schema of a member of a list, an object or a map.
 *
 * @returns undefined for a member that is unknown or may be anything.
 */
export function memberOf(schema: z.core.$ZodType, key: PropertyKey): z.core.$ZodType | undefined {
  if (schema instanceof z.ZodArray) return withoutOptional(schema.element)
  if (schema instanceof z.ZodRecord) {
    return schema.valueType instanceof z.ZodUnknown ? undefined : schema.valueType
  }
  if (!(schema instanceof z.ZodObject) || !Object.hasOwn(schema.shape, key)) return undefined
  const shape: Readonly<Record<PropertyKey, z.core.$ZodType>> = schema.shape
  const member = shape[key]
  return member && withoutOptional(member)
}

function withoutOptional(schema: z.core.$ZodType): z.core.$ZodType {
  return schema instanceof z.ZodOptional ? withoutOptional(schema.def.innerType) : schema
}

const NOUNS: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
}

/** Formats a value for a message, in one line. A text of more than 64 characters is cut. */
export function quote(value: unknown): string {
  if (value === undefined) return 'none'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object' && value !== null) return 'an object'
  if (typeof value !== 'string') return JSON.stringify(value)
  const shown = value.length > LONGEST_VALUE ? `${value.slice(0, LONGEST_VALUE)}...` : value
  // One line, whatever is in it.
  return `'${JSON.stringify(shown).slice(1, -1)}'`
}

function oneOf(words: readonly string[]): string {
  const last = words.at(-1) ?? 'nothing'
  return words.length < 2 ? last : `${words.slice(0, -1).join(', ')} or ${last}`
}

function unionOf(errors: readonly (readonly z.core.$ZodIssue[])[]): readonly string[] {
  return errors.flatMap(([issue]) =>
    issue?.code === 'invalid_type' ? (NOUNS[issue.expected] ?? issue.expected) : [],
  )
}

/** Says the size of a value: of a text or a list its length, of a number itself. */
function sizeOf(value: unknown): string {
  if (typeof value === 'string') return `${value.length} characters`
  return Array.isArray(value) ? `${value.length} of them` : quote(value)
}

function yamlHint({ expected, input }: { readonly expected: string; readonly input?: unknown }) {
  if (expected !== 'string' || typeof input !== 'boolean') return ''
  return '; YAML reads an unquoted y, n, on, off, yes and no so'
}
