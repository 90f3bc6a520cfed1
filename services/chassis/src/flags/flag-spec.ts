/** Fields that every flag has. */
interface FlagBase {
  readonly description: string
  /** `s`, `bytes`, ...; absent if it has none. */
  readonly unit?: string
  /** Other names; a single letter is written with one dash. */
  readonly aliases?: readonly string[]
  /** It is accepted for others' command lines and has no effect, which is logged if it comes. Such a flag has no default. */
  readonly isIgnored?: true
}

export type FlagSpec = FlagBase &
  (
    | {
        readonly type: 'string'
        readonly default?: string
        /** Each occurrence adds one. */
        readonly repeatable?: boolean
        /** The value is the path of one, or ends with it (NAME=PATH): shells complete it. */
        readonly path?: 'file' | 'folder'
      }
    | {
        /** A whole number in decimal, from `min` to `max`; default: the exact integers. */
        readonly type: 'int'
        readonly default?: number
        readonly min?: number
        readonly max?: number
        /** Words that it takes in place of a number. */
        readonly words?: Readonly<Record<string, number>>
      }
    | {
        /** `--x`, or one of true, on, 1, false, off, 0 in any case. */
        readonly type: 'bool'
        readonly default?: boolean
      }
    | {
        /** One of `values`, in any case. */
        readonly type: 'enum'
        readonly values: readonly string[]
        readonly default?: string
      }
  )

/** The flags of a command: plain data, from which parsing, `--help` and README tables all come. */
export type FlagTable = Readonly<Record<string, FlagSpec>>

type ScalarOf<F extends FlagSpec> = F extends { type: 'int' }
  ? number
  : F extends { type: 'bool' }
    ? boolean
    : F extends { type: 'enum'; values: readonly (infer V)[] }
      ? V
      : string

/** The value that a flag parses to. A list for repeatable flags, empty if it never came. */
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
