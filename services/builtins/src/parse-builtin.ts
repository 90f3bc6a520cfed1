import { nearestName } from '@tutti/errors'
import { z } from 'zod'
import type { Builtin } from './builtin.ts'
import { BUILTINS, type BuiltinName } from './catalogue.ts'
import type { BuiltinFault } from './ports.ts'

const BY_NAME: ReadonlyMap<unknown, (typeof BUILTINS)[number]> = new Map(
  BUILTINS.map((builtin) => [builtin.name, builtin]),
)

/** A built-in as a step names it, with its options checked and completed. */
export interface BuiltinStep {
  readonly name: BuiltinName
  readonly options: Readonly<Record<string, unknown>>
}

export type ParsedBuiltin =
  | { readonly step: BuiltinStep; readonly faults: readonly [] }
  | { readonly step?: undefined; readonly faults: readonly BuiltinFault[] }

/** Finds a built-in of the catalogue. */
export function findBuiltin(name: string): Builtin | undefined {
  return BY_NAME.get(name)
}

/**
 * Reads the `builtin` of a step, whose options stand beside its name.
 *
 * @returns the step, or faults that name the field, what it has and what is wanted. It never throws.
 */
export function parseBuiltin(given: unknown): ParsedBuiltin {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    return { faults: [{ path: '', got: quote(given), want: 'an object with a name' }] }
  }
  const { name, ...options } = Object.fromEntries(Object.entries(given))
  const builtin = BY_NAME.get(name)
  if (builtin === undefined) return { faults: [unknownName(name)] }
  // A schema of zod does not see this one.
  if (Object.hasOwn(options, '__proto__')) return { faults: [unknownOption('__proto__', builtin)] }
  const parsed = z.safeParse(builtin.options, options, { error: describeIssue })
  if (parsed.success) {
    return { step: { name: builtin.name, options: parsed.data }, faults: [] }
  }
  const known = Object.keys(builtin.options.shape)
  const faults = parsed.error.issues.flatMap((issue) => toFaults(issue, known, options))
  // One value may break several rules, of which the first says most.
  return {
    faults: faults.filter(({ path }, i) => faults.findIndex((one) => one.path === path) === i),
  }
}

function unknownOption(key: string, { options }: Builtin): BuiltinFault {
  return { path: key, got: 'an unknown option', want: fieldsOf(Object.keys(options.shape)) }
}

function fieldsOf(known: readonly string[]): string {
  return known.length === 0 ? 'no options' : `one of ${known.join(', ')}`
}

/** The JSON Schema of a built-in's options, as users write them. */
export function toOptionsSchema(options: z.ZodObject): z.core.JSONSchema.BaseSchema {
  return z.toJSONSchema(options, { io: 'input' })
}

function unknownName(name: unknown): BuiltinFault {
  const near = typeof name === 'string' ? nearestName(name, names()) : undefined
  const hint = near === undefined ? `one of ${names().join(', ')}` : `did you mean ${near}?`
  return { path: 'name', got: quote(name), want: `the name of a built-in: ${hint}` }
}

const names = (): string[] => BUILTINS.map(({ name }) => name)

const LONGEST_VALUE = 64

function quote(value: unknown): string {
  const text = value === undefined ? 'nothing' : JSON.stringify(value)
  return text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}…` : text
}

/** The wanted value, as texts say it. */
const describeIssue: z.core.$ZodErrorMap = (issue) => {
  if (issue.code === 'invalid_type') return NOUNS[issue.expected] ?? issue.expected
  if (issue.code === 'invalid_value') return oneOf(issue.values.map(String))
  if (issue.code === 'too_small') return `${SIZES[issue.origin] ?? ''}at least ${issue.minimum}`
  if (issue.code === 'too_big') return `${SIZES[issue.origin] ?? ''}at most ${issue.maximum}`
  if (issue.code !== 'invalid_union') return undefined
  return [...new Set(issue.errors.flat().map(({ message }) => message))].join(' or ')
}

function oneOf(values: readonly string[]): string {
  return values.length === 1 ? `${values[0]}` : `one of ${values.join(', ')}`
}

const NOUNS: Readonly<Record<string, string>> = {
  int: 'a whole number',
  number: 'a finite number',
  string: 'a text',
  boolean: 'true or false',
  array: 'a list',
  tuple: 'a list',
  object: 'an object',
}
const SIZES: Readonly<Record<string, string>> = {
  string: 'a length of ',
  array: 'a number of elements of ',
}

function toFaults(
  issue: z.core.$ZodIssue,
  known: readonly string[],
  options: object,
): BuiltinFault[] {
  const path = z.core.toDotPath(issue.path)
  if (issue.code !== 'unrecognized_keys') {
    return [{ path, got: quote(valueAt(options, issue.path)), want: issue.message }]
  }
  return issue.keys.map((key) => {
    const near = issue.path.length === 0 ? nearestName(key, known) : undefined
    const want = near === undefined ? fieldsOf(known) : `an option: did you mean ${near}?`
    return { path: z.core.toDotPath([...issue.path, key]), got: 'an unknown option', want }
  })
}

function valueAt(options: object, path: readonly PropertyKey[]): unknown {
  let value: unknown = options
  for (const key of path) {
    value = typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined
  }
  return value
}
