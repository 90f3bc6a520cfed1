import { type CommandInput, runIn } from '@tutti/command-line/testing'
import { run } from '../run.ts'

/** Runs a command of `tutti` in this process. */
export function runCommand(argv: readonly string[], o: CommandInput = {}) {
  return runIn(o, (environment) => run(argv, environment))
}
