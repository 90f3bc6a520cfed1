/** What every flag says of itself. */
interface FlagBase {
  readonly description: string
  /** `s`, `bytes`, ...; absent if it has none. */
  readonly unit?: string
  /** Other names; a single letter is written with one dash. */
  readonly aliases?: readonly string[]
}

/** A text. Repeatable: each occurrence adds one. */
export interface StringFlag extends FlagBase {
  readonly type: 'string'
  readonly default?: string
  readonly repeatable?: boolean
}

/** A whole number in decimal, from `min` to `max`. */
export interface IntFlag extends FlagBase {
  readonly type: 'int'
  readonly default?: number
  /** Default: the smallest exact integer. */
  readonly min?: number
  readonly max?: number
}

/** `--x`, or one of true, on, 1, false, off, 0 in any case. */
export interface BoolFlag extends FlagBase {
  readonly type: 'bool'
  readonly default?: boolean
}

/** One of `values`, exactly as written. */
export interface EnumFlag extends FlagBase {
  readonly type: 'enum'
  readonly values: readonly string[]
  readonly default?: string
}

export type FlagSpec = StringFlag | IntFlag | BoolFlag | EnumFlag

/** The flags of a command: plain data, from which parsing, `--help` and README tables all come. */
export type FlagTable = Readonly<Record<string, FlagSpec>>

type ScalarOf<F extends FlagSpec> = F extends { type: 'int' }
  ? number
  : F extends { type: 'bool' }
    ? boolean
    : F extends { type: 'enum'; values: readonly (infer V)[] }
      ? V
      : string

/** What a flag parses to. A list for repeatable flags, empty if it never came. */
export type FlagValue<F extends FlagSpec> = F extends { repeatable: true }
  ? readonly string[]
  : F extends { default: string | number | boolean }
    ? ScalarOf<F>
    : ScalarOf<F> | undefined

export type FlagValues<T extends FlagTable> = { readonly [K in keyof T]: FlagValue<T[K]> }

/** A flag's name as it is written: a single letter with one dash. */
export function withDashes(name: string): string {
  return name.length === 1 ? `-${name}` : `--${name}`
}

/** What values a flag takes, for help and tables: `int, 0 to 65535`, `string, repeatable`. */
export function describeFlagType(flag: FlagSpec): string {
  if (flag.type === 'int') return describeRange(flag)
  if (flag.type === 'enum') return flag.values.join(', ')
  if (flag.type === 'string') return flag.repeatable ? 'string, repeatable' : 'string'
  return 'boolean'
}

/** The default as text, `-` if there is none. */
export function describeFlagDefault(flag: FlagSpec): string {
  if (flag.default === undefined || flag.default === '') return '-'
  return String(flag.default)
}

function describeRange({ min, max }: IntFlag): string {
  if (min === undefined && max === undefined) return 'int'
  if (max === undefined) return `int, at least ${min}`
  if (min === undefined) return `int, at most ${max}`
  return `int, ${min} to ${max}`
}
