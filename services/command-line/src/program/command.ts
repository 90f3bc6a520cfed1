import type { FlagTable, ProcessEnvironment } from '@tutti/chassis'
import type { z } from 'zod'

/** The choices that a shell offers for an operand: files, folders, the models of a running server, or certain words. */
export type Choices = 'file' | 'folder' | 'model' | readonly string[]

/** A command in the list of its program, with its name and description, before its modules are loaded. */
export interface CommandEntry {
  readonly name: string
  /** One line for the list of commands. */
  readonly description: string
  /** Loads the modules of this command alone. */
  load(): Promise<CommandBody>
}

/** The body of a command: the data for `--help` and completion, and the function that runs it. */
export interface CommandBody {
  /** First line of `--help`. */
  readonly usage: string
  readonly flags: FlagTable
  /** Operands, which stand beside the flags, in order. */
  readonly operands?: readonly Choices[]
  /**
   * Schema of the JSON that the command prints: one value, or one in each line. `npm run gen` writes the schema to
   * schemas/cli-NAME.json, and results.test.ts runs the command. Absent for a command without results, which has no flag
   * `format`.
   */
  readonly result?: z.ZodType
  /** Runs the command. @returns the exit code. @throws ServeError, FLAG_INVALID for arguments that are not understood. */
  run(argv: readonly string[], environment: ProcessEnvironment): Promise<number>
}

/** A command of a program, loaded. */
export type Command = CommandBody & Pick<CommandEntry, 'name' | 'description'>
