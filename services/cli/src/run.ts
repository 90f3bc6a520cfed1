import type { ProcessEnvironment } from '@tutti/chassis'
import { runProgram } from '@tutti/command-line/program'
import { COMMANDS } from './commands.ts'

/** Runs the command of `tutti` that `argv` names. @returns the exit code: 0 for success, 1 for a failure, 2 for bad arguments. */
export function run(argv: readonly string[], environment: ProcessEnvironment): Promise<number> {
  return runProgram({ name: 'tutti', commands: COMMANDS }, argv, environment)
}
