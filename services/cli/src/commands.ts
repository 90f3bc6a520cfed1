import type { Command } from './command.ts'
import { configCommand } from './config/config-command.ts'
import { importCommand } from './import/import-command.ts'
import { fetchCommand, routerCommand, stepCommand } from './processes.ts'
import { serveCommand } from './serve/serve-command.ts'
import { validateCommand } from './validate/validate-command.ts'

export const COMMANDS: readonly Command[] = [
  serveCommand,
  configCommand,
  validateCommand,
  importCommand,
  stepCommand,
  routerCommand,
  fetchCommand,
]
