import { nearestName, ServeError } from '@tutti/errors'
import { type FlagSpec, type FlagTable, type FlagValues, withDashes } from './flag-spec.ts'

/** Result of reading a command line. */
export interface ParsedFlags<T extends FlagTable> {
  readonly values: FlagValues<T>
  /** Arguments that are no flags, in order, and everything after `--`. */
  readonly positionals: readonly string[]
  /** True if `--help` or `-h` came: nothing else was read, all values are defaults. */
  readonly help: boolean
}

/** Reasons why flags are refused, by the flag's name without dashes. */
export type RefusedFlags = Readonly<Record<string, string>>

type Scalar = string | number | boolean

const MOST = Number.MAX_SAFE_INTEGER

/**
 * Reads a command line in tritonserver's manner: `--name=value`, `--name value`, `--x` for a boolean. Where a flag that
 * is not repeatable comes twice, the last one holds.
 *
 * @param argv - without the program's own name.
 * @param refused - flags that are known and cannot be offered, and why.
 * @throws ServeError FLAG_INVALID that names the flag, what came and what was wanted; the nearest known name for an
 * unknown one.
 */
export function parseFlags<const T extends FlagTable>(
  table: T,
  argv: readonly string[],
  refused: RefusedFlags = {},
): ParsedFlags<T> {
  const end = argv.indexOf('--')
  const words = end < 0 ? argv : argv.slice(0, end)
  const help = words.includes('--help') || words.includes('-h')
  const { came, positionals } = readWords(table, help ? [] : words, refused)
  const values = Object.fromEntries(
    Object.entries(table).map(([name, spec]) => [name, settle(spec, came.get(name) ?? [])]),
  )
  return {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- fromEntries() forgets which key has which type; settle() gave each its own
    values: Object.freeze(values) as FlagValues<T>,
    positionals: help ? [] : [...positionals, ...argv.slice(words.length + 1)],
    help,
  }
}

function readWords(table: FlagTable, words: readonly string[], refused: RefusedFlags) {
  const names = indexNames(table)
  const came = new Map<string, Scalar[]>()
  const positionals: string[] = []
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? ''
    if (!word.startsWith('-') || word === '-') {
      positionals.push(word)
      continue
    }
    const { written, name, spec, inline } = readName(names, word, refused)
    const next = words[at + 1]
    const takesNext = inline === undefined && wantsNext(spec, next)
    if (takesNext) at++
    const value = toValue(written, spec, inline ?? (takesNext ? next : undefined))
    came.set(name, [...(came.get(name) ?? []), value])
  }
  return { came, positionals }
}

interface NamedFlag {
  readonly name: string
  readonly spec: FlagSpec
}

function indexNames(table: FlagTable): ReadonlyMap<string, NamedFlag> {
  const flags = Object.entries(table).flatMap(([name, spec]) =>
    [name, ...(spec.aliases ?? [])].map((alias) => [withDashes(alias), { name, spec }] as const),
  )
  return new Map(flags)
}

function readName(names: ReadonlyMap<string, NamedFlag>, word: string, refused: RefusedFlags) {
  const equals = word.indexOf('=')
  const written = equals < 0 ? word : word.slice(0, equals)
  const flag = names.get(written)
  if (flag === undefined) {
    const why = Object.entries(refused).find(([name]) => withDashes(name) === written)?.[1]
    if (why !== undefined) throw flagRefusal(written, why)
    const near = nearestName(written, names.keys())
    const hint = near === undefined ? '' : `; did you mean ${near}?`
    throw refusal(written, `unknown flag ${written}${hint}`)
  }
  return { ...flag, written, inline: equals < 0 ? undefined : word.slice(equals + 1) }
}

const SWITCHES: Readonly<Record<string, boolean>> = {
  true: true,
  on: true,
  1: true,
  false: false,
  off: false,
  0: false,
}

function toBool(text: string): boolean | undefined {
  const word = text.toLowerCase()
  return Object.hasOwn(SWITCHES, word) ? SWITCHES[word] : undefined
}

/**
 * Tells whether a flag takes the next word. A boolean does only if the word reads as one; others do unless the word is a flag.
 */
function wantsNext(spec: FlagSpec, next: string | undefined): boolean {
  if (next === undefined) return false
  return spec.type === 'bool' ? toBool(next) !== undefined : !next.startsWith('--')
}

/** Converts the value of one occurrence. */
function toValue(written: string, spec: FlagSpec, text: string | undefined): Scalar {
  const refuse = (want: string): never => {
    throw refusal(written, `flag ${written}: "${text}", want ${want}`)
  }
  if (spec.type === 'bool') {
    return text === undefined || (toBool(text) ?? refuse('true or false'))
  }
  if (text === undefined) {
    throw refusal(written, `flag ${written} has no value, want ${written}=<${spec.type}>`)
  }
  if (spec.type === 'enum') {
    // Triton's --model-control-mode=POLL is written so in manifests.
    const value = spec.values.find((known) => known.toLowerCase() === text.toLowerCase())
    return value ?? refuse(`one of ${spec.values.join(', ')}`)
  }
  return spec.type === 'int' ? (toInt(spec, text) ?? refuse(rangeOf(spec))) : text
}

type IntFlag = Extract<FlagSpec, { readonly type: 'int' }>

function toInt({ min = -MOST, max = MOST, words = {} }: IntFlag, text: string) {
  const word = text.toLowerCase()
  if (Object.hasOwn(words, word)) return words[word]
  const value = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN
  return value >= min && value <= max ? value : undefined
}

function rangeOf({ min = -MOST, max = MOST }: IntFlag): string {
  return `a whole number from ${min} to ${max}`
}

function refusal(flag: string, message: string, cause?: unknown): ServeError {
  return new ServeError('FLAG_INVALID', message, { cause, details: { field: flag } })
}

function settle(spec: FlagSpec, came: readonly Scalar[]): unknown {
  const isRepeatable = spec.type === 'string' && spec.repeatable === true
  if (!isRepeatable) return came.at(-1) ?? spec.default
  return came.length > 0 || spec.default === undefined ? came : [spec.default]
}

/** Makes the FLAG_INVALID error for a flag whose value cannot be used. @param flag - name with its dashes. */
export function flagRefusal(flag: string, problem: string, cause?: unknown): ServeError {
  return refusal(flag, `${flag}: ${problem}`, cause)
}

/**
 * Reads the values of a repeatable flag as pairs, each split at its first `=`.
 *
 * @param wanted - form of a pair, for the error, e.g. `NAME=DIR`.
 * @throws ServeError FLAG_INVALID for a value that is no pair, or a name that comes twice.
 */
export function readPairs(
  flag: string,
  occurrences: readonly string[],
  wanted: string,
): ReadonlyMap<string, string> {
  const pairs = new Map<string, string>()
  for (const text of occurrences) {
    const [, name = '', value = ''] = /^([^=]+)=(.+)$/s.exec(text) ?? []
    if (name === '') throw flagRefusal(flag, `"${text}", want ${wanted}`)
    if (pairs.has(name)) throw flagRefusal(flag, `"${name}" came twice, want a name once`)
    pairs.set(name, value)
  }
  return pairs
}
