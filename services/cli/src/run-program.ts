import {
  type ProcessEnvironment,
  readResultFormat,
  reportFailure,
  reportProblem,
} from '@tutti/chassis'
import manifest from '../package.json' with { type: 'json' }
import type { Command } from './command.ts'

const FAILED = 1
const USAGE_ERROR = 2

/** A program of commands. */
export interface Program {
  /** As a user writes it. */
  readonly name: string
  readonly commands: readonly Command[]
  /** Whether an error is that of another program, so that Tutti has no page about it. */
  readonly isOfOthers?: (error: unknown) => boolean
}

/**
 * Runs the command that `argv` names.
 *
 * @returns the exit code: 0 well, 1 failed, 2 not understood.
 */
export async function runProgram(
  program: Program,
  argv: readonly string[],
  environment: ProcessEnvironment,
): Promise<number> {
  const [name, ...rest] = argv
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    environment.out(usageOf(program))
    return name === undefined ? USAGE_ERROR : 0
  }
  if (name === '--version') {
    environment.out(`${program.name} ${manifest.version}\n`)
    return 0
  }
  const command = program.commands.find((known) => known.name === name)
  if (command === undefined) {
    environment.err(`${program.name}: unknown command '${name}'\n\n${usageOf(program)}`)
    return USAGE_ERROR
  }
  const output = { ...environment, errorFormat: readResultFormat(command.flags, rest) }
  try {
    return await command.run(rest, output)
  } catch (error) {
    const running = `${program.name} ${name}`
    if (error instanceof Error && program.isOfOthers?.(error)) {
      reportProblem(running, error, output, { isOfOthers: true })
      return FAILED
    }
    return reportFailure(running, error, output)
  }
}

function usageOf({ name, commands }: Program): string {
  const width = Math.max(...commands.map((command) => command.name.length))
  const lines = commands.map((c) => `  ${c.name.padEnd(width)}  ${c.description}`)
  return `Usage: ${name} COMMAND [FLAGS]\n\n${lines.join('\n')}\n\n${name} COMMAND --help lists a command's flags, ${name} --version prints the version.\n`
}
