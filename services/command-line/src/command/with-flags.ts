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

/** How a command prints its results, unless it is `infer`, whose `--output` names files, or takes the flags of `infer`: then it is FORMAT_FLAG. */
export const RESULT_FORMAT_FLAG = {
  ...FORMAT_FLAG,
  aliases: ['output'],
} as const satisfies FlagTable[string]

/** The same of `kubectl tutti`, as kubectl has it. */
export const KUBECTL_FORMAT_FLAG = {
  ...FORMAT_FLAG,
  aliases: ['output', 'o'],
} as const satisfies FlagTable[string]

/** Makes a command that does one thing with its flags and ends; --help prints the flags. */
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
