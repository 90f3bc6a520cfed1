import {
  type FlagTable,
  type FlagValues,
  type ProcessEnvironment,
  parseFlags,
  renderHelp,
} from '@tutti/chassis'

/** A command of `tutti`. */
export interface Command {
  readonly name: string
  /** One line for the list of commands. */
  readonly description: string
  /** @returns the exit code. @throws ServeError; FLAG_INVALID for what was not understood. */
  run(argv: readonly string[], environment: ProcessEnvironment): Promise<number>
}

/** How a command prints its results. Not `--output`, which names the files that a command writes. */
export const FORMAT_FLAG = {
  type: 'enum',
  values: ['text', 'json'],
  default: 'text',
  description: 'Output format: text for people, JSON for scripts.',
} as const satisfies FlagTable[string]

/** The `run` of a command that does one thing with its flags and ends; --help prints them. */
export function withFlags<T extends FlagTable>(
  o: { readonly usage: string; readonly flags: T },
  run: (
    given: { readonly flags: FlagValues<T>; readonly positionals: readonly string[] },
    environment: ProcessEnvironment,
  ) => Promise<number>,
): Command['run'] {
  return async (argv, environment) => {
    const { values, positionals, help } = parseFlags(o.flags, argv)
    if (!help) return await run({ flags: values, positionals }, environment)
    environment.out(renderHelp(o))
    return 0
  }
}
