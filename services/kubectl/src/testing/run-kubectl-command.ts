import { runProgram } from '@tutti/command-line/program'
import { type CommandInput, runIn } from '@tutti/command-line/testing'
import { KUBECTL_PROGRAM } from '../kubectl-program.ts'

/** Runs a command of `kubectl tutti` in this process. */
export function runKubectlCommand(argv: readonly string[], o: CommandInput = {}) {
  return runIn(o, (environment) => runProgram(KUBECTL_PROGRAM, argv, environment))
}
