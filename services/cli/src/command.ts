import {
  type FlagTable,
  type FlagValues,
  FORMAT_FLAG,
  type ProcessEnvironment,
  parseFlags,
  renderHelp,
} from '@tutti/chassis'
import type { z } from 'zod'

export { FORMAT_FLAG }

/** What a shell offers for an operand: files, folders, the models of a running server, or certain words. */
export type Choices = 'file' | 'folder' | 'model' | readonly string[]

/** A command in the list of its program: what that says about it without loading it. */
export interface CommandEntry {
  readonly name: string
  /** One line for the list of commands. */
  readonly description: string
  /** Loads what the command needs, and nothing of the others. */
  load(): Promise<CommandBody>
}

/** What a command is and does: plain data, from which `--help` and completion come, and its run. */
export interface CommandBody {
  /** First line of `--help`. */
  readonly usage: string
  readonly flags: FlagTable
  /** What stands beside the flags, in order. */
  readonly operands?: readonly Choices[]
  /**
   * What it prints as JSON: one value, or one in each line. `npm run gen` writes its schema to schemas/cli-NAME.json, and
   * results.test.ts runs the command. Absent if it prints no results; it then has no flag `format`.
   */
  readonly result?: z.ZodType
  /** @returns the exit code. @throws ServeError; FLAG_INVALID for what was not understood. */
  run(argv: readonly string[], environment: ProcessEnvironment): Promise<number>
}

/** A command of a program, loaded. */
export type Command = CommandBody & Pick<CommandEntry, 'name' | 'description'>

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
