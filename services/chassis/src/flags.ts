import { nearestName, ServeError } from '@tutti/errors'
import {
  type EnumFlag,
  type FlagSpec,
  type FlagTable,
  type FlagValues,
  type IntFlag,
  withDashes,
} from './flag-spec.ts'

/** A command line, read. */
export interface ParsedFlags<T extends FlagTable> {
  readonly values: FlagValues<T>
  /** What is no flag, in order; everything after `--`. */
  readonly positionals: readonly string[]
  /** True if `--help` or `-h` came: nothing else was read, all values are defaults. */
  readonly help: boolean
}

type Scalar = string | number | boolean

/**
 * Reads a command line in tritonserver's manner: `--name=value`, `--name value`, `--x` for a boolean. Where a flag that
 * is not repeatable comes twice, the last one holds.
 *
 * @param argv - without the program's own name.
 * @throws ServeError FLAG_INVALID that names the flag, what came and what was wanted; the nearest known name for an
 * unknown one.
 */
export function parseFlags<const T extends FlagTable>(
  table: T,
  argv: readonly string[],
): ParsedFlags<T> {
  if (asksForHelp(argv)) return toParsed(table, new Map(), [], true)
  const names = indexNames(table)
  const came = new Map<string, Scalar[]>()
  const positionals: string[] = []
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at] ?? ''
    if (word === '--') {
      positionals.push(...argv.slice(at + 1))
      break
    }
    if (!word.startsWith('-') || word === '-') {
      positionals.push(word)
      continue
    }
    const { written, flag, inline } = readName(names, word)
    const next = argv[at + 1]
    const takesNext = inline === undefined && wantsNext(flag.spec, next)
    if (takesNext) at++
    const value = toValue(written, flag.spec, inline ?? (takesNext ? next : undefined))
    came.set(flag.name, [...(came.get(flag.name) ?? []), value])
  }
  return toParsed(table, came, positionals, false)
}

interface NamedFlag {
  readonly name: string
  readonly spec: FlagSpec
}

function asksForHelp(argv: readonly string[]): boolean {
  const end = argv.indexOf('--')
  const words = end < 0 ? argv : argv.slice(0, end)
  return words.includes('--help') || words.includes('-h')
}

function indexNames(table: FlagTable): ReadonlyMap<string, NamedFlag> {
  const names = new Map<string, NamedFlag>()
  for (const [name, spec] of Object.entries(table)) {
    for (const written of [name, ...(spec.aliases ?? [])])
      names.set(withDashes(written), { name, spec })
  }
  return names
}

function readName(
  names: ReadonlyMap<string, NamedFlag>,
  word: string,
): { written: string; flag: NamedFlag; inline: string | undefined } {
  const equals = word.indexOf('=')
  const written = equals < 0 ? word : word.slice(0, equals)
  const flag = names.get(written)
  if (flag === undefined) {
    const near = nearestName(written, names.keys())
    const hint = near === undefined ? '' : `; did you mean ${near}?`
    throw refusal(written, `unknown flag ${written}${hint}`)
  }
  return { written, flag, inline: equals < 0 ? undefined : word.slice(equals + 1) }
}

const TRUE_WORDS: ReadonlySet<string> = new Set(['true', 'on', '1'])
const FALSE_WORDS: ReadonlySet<string> = new Set(['false', 'off', '0'])

/** A boolean takes the next word only if it reads as one; others take it unless it is a flag itself. */
function wantsNext(spec: FlagSpec, next: string | undefined): boolean {
  if (next === undefined) return false
  if (spec.type === 'bool') return toBool(next) !== undefined
  return !next.startsWith('--')
}

function toBool(text: string): boolean | undefined {
  const word = text.toLowerCase()
  if (TRUE_WORDS.has(word)) return true
  return FALSE_WORDS.has(word) ? false : undefined
}

/** The value that one occurrence gives. */
function toValue(written: string, spec: FlagSpec, text: string | undefined): Scalar {
  if (spec.type === 'bool') return toSwitch(written, text)
  if (text === undefined) {
    throw refusal(written, `flag ${written} has no value, want ${written}=<${spec.type}>`)
  }
  if (spec.type === 'int') return toInt(written, spec, text)
  return spec.type === 'enum' ? toOneOf(written, spec, text) : text
}

function toSwitch(written: string, text: string | undefined): boolean {
  const value = text === undefined ? true : toBool(text)
  if (value !== undefined) return value
  throw refusal(written, `flag ${written}: "${text}", want true or false`)
}

function toOneOf(written: string, spec: EnumFlag, text: string): string {
  if (spec.values.includes(text)) return text
  throw refusal(written, `flag ${written}: "${text}", want one of ${spec.values.join(', ')}`)
}

function toInt(written: string, spec: IntFlag, text: string): number {
  const min = spec.min ?? Number.MIN_SAFE_INTEGER
  const max = spec.max ?? Number.MAX_SAFE_INTEGER
  const value = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN
  if (value >= min && value <= max) return value
  throw refusal(written, `flag ${written}: "${text}", want a whole number from ${min} to ${max}`)
}

function refusal(written: string, message: string): ServeError {
  return new ServeError('FLAG_INVALID', message, { details: { field: written } })
}

function toParsed<T extends FlagTable>(
  table: T,
  came: ReadonlyMap<string, readonly Scalar[]>,
  positionals: readonly string[],
  help: boolean,
): ParsedFlags<T> {
  const values = Object.fromEntries(
    Object.entries(table).map(([name, spec]) => [name, settle(spec, came.get(name) ?? [])]),
  )
  return {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- fromEntries() forgets which key has which type; settle() gave each its own
    values: Object.freeze(values) as FlagValues<T>,
    positionals,
    help,
  }
}

function settle(spec: FlagSpec, came: readonly Scalar[]): unknown {
  const isRepeatable = spec.type === 'string' && spec.repeatable === true
  if (!isRepeatable) return came.at(-1) ?? spec.default
  return came.length > 0 || spec.default === undefined ? came : [spec.default]
}
