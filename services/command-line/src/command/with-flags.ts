import {
  type FlagTable,
  type FlagValues,
  FORMAT_FLAG,
  type ProcessEnvironment,
  parseFlags,
  renderHelp,
} from '@tutti/chassis'
import type { CommandBody } from '../program/command.ts'

export { FORMAT_FLAG }

/**
 * Flag for the format of a command's results, also as `--output`. Commands with the flags of `infer`, whose `--output` names
 * files, have FORMAT_FLAG.
 */
export const RESULT_FORMAT_FLAG = {
  ...FORMAT_FLAG,
  aliases: ['output'],
} as const satisfies FlagTable[string]

/** Flag for the format of results of `kubectl tutti`, also as `--output` and `-o`, as in kubectl. */
export const KUBECTL_FORMAT_FLAG = {
  ...FORMAT_FLAG,
  aliases: ['output', 'o'],
} as const satisfies FlagTable[string]

/** Makes a command that parses its flags and then calls `run`; with `--help`, it prints the flags instead. */
export function withFlags<T extends FlagTable>(
  o: { readonly usage: string; readonly flags: T } & Pick<CommandBody, 'operands' | 'result'>,
  run: (
    given: { readonly flags: FlagValues<T>; readonly positionals: readonly string[] },
    environment: ProcessEnvironment,
  ) => Promise<number>,
): CommandBody {
  return {
    ...o,
    run: async (argv, environment) => {
      const { values, positionals, help } = parseFlags(o.flags, argv)
      if (!help) return await run({ flags: values, positionals }, environment)
      environment.out(renderHelp(o))
      return 0
    },
  }
}
