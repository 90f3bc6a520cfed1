/** Fields that every flag has. */
interface FlagBase {
  readonly description: string
  /** Unit of the value, such as `s` or `bytes`; absent if it has none. */
  readonly unit?: string
  /** Other names; a single letter is written with one dash. */
  readonly aliases?: readonly string[]
  /** True for a flag that is accepted for compatibility and has no effect. Its use is logged. Such a flag has no default. */
  readonly isIgnored?: true
}

export type FlagSpec = FlagBase &
  (
    | {
        readonly type: 'string'
        readonly default?: string
        /** True if the flag may come several times; each occurrence adds a value. */
        readonly repeatable?: boolean
        /** Kind of path that the value is, or that it ends with (NAME=PATH), so that shells can complete it. */
        readonly path?: 'file' | 'folder'
      }
    | {
        /** A whole number in decimal, from `min` to `max`; default: the exact integers. */
        readonly type: 'int'
        readonly default?: number
        readonly min?: number
        readonly max?: number
        /** Words that are accepted in place of a number, with the number for each. */
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

/** Writes a flag's name with its dashes: one before a single letter, two before a longer name. */
export function withDashes(name: string): string {
  return name.length === 1 ? `-${name}` : `--${name}`
}
