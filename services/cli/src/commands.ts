import { configCommand } from './config/config-command.ts'
import { importCommand } from './import/import-command.ts'
import { fetchCommand, routerCommand, stepCommand } from './processes.ts'
import type { Surroundings } from './run.ts'
import { serveCommand } from './serve/serve-command.ts'
import { validateCommand } from './validate/validate-command.ts'

export interface Command {
  readonly name: string
  /** One line for the list of commands. */
  readonly description: string
  /** @returns the exit code. @throws ServeError; FLAG_INVALID for what was not understood. */
  run(argv: readonly string[], around: Surroundings): Promise<number>
}

export const COMMANDS: readonly Command[] = [
  serveCommand,
  configCommand,
  validateCommand,
  importCommand,
  stepCommand,
  routerCommand,
  fetchCommand,
]
