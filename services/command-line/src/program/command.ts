import type { FlagTable, ProcessEnvironment } from '@tutti/chassis'
import type { z } from 'zod'

/** The choices that a shell offers for an operand: files, folders, the models of a running server, or certain words. */
export type Choices = 'file' | 'folder' | 'model' | readonly string[]

/** A command in the list of its program: what that says about it without loading it. */
export interface CommandEntry {
  readonly name: string
  /** One line for the list of commands. */
  readonly description: string
  /** Loads what the command needs, and nothing of the others. */
  load(): Promise<CommandBody>
}

/** The body of a command: plain data, from which `--help` and completion come, and its run. */
export interface CommandBody {
  /** First line of `--help`. */
  readonly usage: string
  readonly flags: FlagTable
  /** Operands, which stand beside the flags, in order. */
  readonly operands?: readonly Choices[]
  /**
   * Schema of what it prints as JSON: one value, or one in each line. `npm run gen` writes it to schemas/cli-NAME.json, and
   * results.test.ts runs the command. Absent if it prints no results; it then has no flag `format`.
   */
  readonly result?: z.ZodType
  /** @returns the exit code. @throws ServeError; FLAG_INVALID for what was not understood. */
  run(argv: readonly string[], environment: ProcessEnvironment): Promise<number>
}

/** A command of a program, loaded. */
export type Command = CommandBody & Pick<CommandEntry, 'name' | 'description'>
