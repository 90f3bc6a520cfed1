import { CelProgram, type CelValue, toCelValue } from '@tutti/cel'
import { z } from 'zod'
import { quote } from './schema-problems.ts'

/** A rule of `x-kubernetes-validations`. */
interface Validation {
  /** CEL over `self`. */
  readonly rule: string
  /** The text that says what is wanted. */
  readonly message: string
  /** CEL for a text that also says what was got. If it gives nothing, or several lines, `message` is used. */
  readonly messageExpression?: string
  readonly fieldPath?: string
}

/** A rule that the API server and Tutti both evaluate. */
export interface CelRule extends Omit<Validation, 'fieldPath'> {
  /** A `messageExpression` above the API server's limit of cost: only Tutti evaluates it. */
  readonly ownMessageExpression?: string
  /** The member that the error names, e.g. `storage.secretRef`; the value itself if absent. */
  readonly field?: string
}

/** A rule as a function. */
interface Refinement<T> {
  readonly holds: (value: T) => boolean
  readonly text: (value: T) => string
  /** The member that the error names; the value itself if absent. */
  readonly field?: string
}

const VALIDATIONS = 'x-kubernetes-validations'

/** The checks of zod that have a counterpart in the CRD, or that cannot have one (`told`): the generator refuses any other. */
const mirrored = new WeakSet<object>()

/** Tells whether a check of zod comes from a helper of this file. The generator of the CRDs refuses all others. */
export function isMirrored(check: object): boolean {
  return mirrored.has(check)
}

/** Adds CEL rules to a schema. The CRD carries their text, and zod evaluates the same text. */
export function cel<T extends z.ZodType>(schema: T, ...rules: readonly CelRule[]): T {
  const compiled = rules.map(compileRule)
  const ruled = rules.reduce((known, rule) => transition(known, toValidation(rule)), schema)
  return withCheck(ruled, (value) => {
    const self = toCelValue(value)
    return compiled.flatMap((findProblem) => findProblem(self))
  })
}

function toValidation({ rule, message, messageExpression, field }: CelRule): Validation {
  return {
    rule,
    message,
    ...(messageExpression !== undefined && { messageExpression }),
    ...(field !== undefined && { fieldPath: `.${field}` }),
  }
}

/**
 * Adds a rule that only Tutti evaluates, because CEL cannot see a field that has more than one type. The condition Accepted
 * reports who breaks it.
 */
export function told<T extends z.ZodType>(schema: T, rule: Refinement<z.output<T>>): T {
  return mirror(schema, rule)
}

/** Adds the rule that an object has exactly one of the members `a` and `b`. */
export function oneOf<
  A extends string,
  B extends string,
  T extends z.ZodType<Readonly<Partial<Record<A | B, unknown>>>>,
>(schema: T, a: A, b: B): T {
  const both = `got ${a} and ${b}, want one of them`
  const none = `got neither ${a} nor ${b}, want one of them`
  return cel(schema, {
    rule: `has(self.${a}) != has(self.${b})`,
    message: `want one of ${a} and ${b}`,
    messageExpression: `has(self.${a}) ? '${both}' : '${none}'`,
  })
}

/** Adds the rule that an object has exactly one of three members. */
export function oneOfThree<
  Names extends readonly [string, string, string],
  T extends z.ZodType<Readonly<Partial<Record<Names[number], unknown>>>>,
>(schema: T, ...names: Names): T {
  const [a, b, c] = names
  const pairs = [[a, b] as const, [a, c] as const, [b, c] as const]
  const pair = pairs.map(
    ([one, other]) => `${hasAll(one, other)} ? 'got ${one} and ${other}, want one of them'`,
  )
  return cel(schema, {
    rule: `(${names.map((name) => hasAll(name)).join(' || ')}) && !(${pairs.map((both) => hasAll(...both)).join(' || ')})`,
    message: `want one of ${a}, ${b} and ${c}`,
    messageExpression: `${pair.join(' : ')} : 'got none of ${a}, ${b} and ${c}, want one of them'`,
  })
}

function hasAll(...names: readonly string[]): string {
  return names.map((name) => `has(self.${name})`).join(' && ')
}

/** Writes a pattern as a string literal of CEL, with its quotes. */
export function celPattern(pattern: RegExp): string {
  return `'${pattern.source.replaceAll('\\', '\\\\')}'`
}

/** Adds a rule for the API server alone, such as one about a change of the object (`oldSelf`). */
export function transition<T extends z.ZodType>(schema: T, o: Validation): T {
  const known = schema.meta()?.[VALIDATIONS]
  return schema.meta({ [VALIDATIONS]: Array.isArray(known) ? [...known, o] : [o] })
}

/**
 * Makes the schema of a list whose elements are told apart by the field `key`. Server-side apply merges such a list by key. A
 * key that comes twice is refused.
 */
export function listMap<T extends z.ZodType>(element: T, key: string, o: Bounds) {
  const list = bounded(element, o).meta({
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': [key],
  })
  const keyOf = (value: unknown): unknown => new Map(Object.entries(Object(value))).get(key)
  return unique(list, keyOf, key)
}

/** Makes the schema of a list of scalars in which each value comes at most once. */
export function listSet<T extends z.ZodType>(element: T, o: Bounds) {
  const list = bounded(element, o).meta({ 'x-kubernetes-list-type': 'set' })
  return unique(list, (value) => value, 'value')
}

/** Makes the schema of a list that server-side apply replaces as a whole. */
export function listAtomic<T extends z.ZodType>(element: T, o: Bounds) {
  return bounded(element, o).meta({ 'x-kubernetes-list-type': 'atomic' })
}

function bounded<T extends z.ZodType>(element: T, { min = 0, max }: Bounds) {
  return z.array(element).min(min).max(max)
}

/**
 * Makes the schema of a map with string keys and at most `max` entries. With `isAtomic`, server-side apply replaces it as a
 * whole.
 */
export function mapOf<T extends z.ZodType>(
  value: T,
  o: { readonly max: number; readonly isAtomic?: boolean },
) {
  const map = z.record(z.string(), value).meta({
    maxProperties: o.max,
    ...(o.isAtomic === true && { 'x-kubernetes-map-type': 'atomic' }),
  })
  return mirror(map, {
    holds: (entries) => Object.keys(entries).length <= o.max,
    text: (entries) => `got ${Object.keys(entries).length} entries, want at most ${o.max}`,
  })
}

export interface Bounds {
  readonly min?: number
  readonly max: number
}

/**
 * Makes the schema of a text of bounded length. `max` counts code points, as the API server does; `min` counts code units, as
 * zod does.
 *
 * @param o.want - the pattern in words; the API server shows the pattern.
 * @param o.ofNumber - the error for a number in place of the text.
 */
export function text(
  o: Bounds & {
    readonly pattern?: RegExp
    readonly want?: string
    readonly ofNumber?: (value: number) => string
  },
) {
  const { min = 0, max, pattern, want } = o
  const ofType = ({ input }: { readonly input?: unknown }) =>
    typeof input === 'number' ? o.ofNumber?.(input) : undefined
  const base = z.string({ error: ofType }).min(min)
  const error = ({ input }: { readonly input?: unknown }) => `got ${quote(input)}, want ${want}`
  const shaped = pattern && base.regex(pattern, want === undefined ? undefined : { error })
  return mirror((shaped ?? base).meta({ maxLength: max }), {
    holds: (value) => value.length <= max || Array.from(value).length <= max,
    text: (value) => `got ${Array.from(value).length} characters, want at most ${max}`,
  })
}

interface Problem {
  readonly message: string
  readonly field?: string | undefined
  /** The rule of CEL that is broken. */
  readonly rule?: string
}

/** Prepares a rule. Nothing is compiled before a value is held against it. */
function compileRule({
  rule,
  message,
  messageExpression,
  ownMessageExpression = messageExpression,
  field,
}: CelRule): (self: CelValue) => Problem[] {
  const program = new CelProgram(rule)
  const toMessage =
    ownMessageExpression === undefined ? undefined : new CelProgram(ownMessageExpression)
  return (self) => {
    // As for the API server, a rule that fails does not hold.
    if (tryEvaluate(program, self) === true) return []
    const said = toMessage && tryEvaluate(toMessage, self)
    const isLine = typeof said === 'string' && said.trim() !== '' && !/[\r\n]/.test(said)
    return [{ message: isLine ? said.trim() : message, field, rule }]
  }
}

function tryEvaluate(program: CelProgram, self: CelValue): unknown {
  try {
    return program.evaluate({ self })
  } catch {
    // The caller goes on without a result, and says so.
    return undefined
  }
}

function mirror<T extends z.ZodType>(schema: T, rule: Refinement<z.output<T>>): T {
  return withCheck(schema, (value) =>
    rule.holds(value) ? [] : [{ message: rule.text(value), field: rule.field }],
  )
}

/** Adds a check that the generator of the CRDs takes. */
function withCheck<T extends z.ZodType>(
  schema: T,
  findProblems: (value: z.output<T>) => readonly Problem[],
): T {
  const checked = schema.check(({ value, issues }) => {
    // All rules that are broken are told, as the API server does. zod writes to the path of an issue.
    for (const { message, field, ...params } of findProblems(value)) {
      const path = field?.split('.') ?? []
      issues.push({ code: 'custom', message, input: value, path, params, continue: true })
    }
  })
  const added = checked.def.checks?.at(-1)
  if (added !== undefined) mirrored.add(added)
  return checked
}

function unique<T extends z.ZodType<readonly unknown[]>>(
  list: T,
  keyOf: (value: unknown) => unknown,
  what: string,
): T {
  const repeated = (values: readonly unknown[]): unknown => {
    const keys = values.map(keyOf)
    return keys.find((key, i) => keys.indexOf(key) !== i)
  }
  return mirror(list, {
    holds: (values) => repeated(values) === undefined,
    text: (values) => `got '${String(repeated(values))}' twice, want each ${what} once`,
  })
}
