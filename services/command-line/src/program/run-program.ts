import type { ProcessEnvironment } from '@tutti/chassis'
import manifest from '../../package.json' with { type: 'json' }
import type { CommandEntry } from './command.ts'

const FAILED = 1
const USAGE_ERROR = 2

/** A program of commands. */
export interface Program {
  /** Name of the program, as users write it. */
  readonly name: string
  readonly commands: readonly CommandEntry[]
  /** Tells whether another program made an error, so that Tutti's documentation does not describe it. */
  readonly isOfOthers?: (error: unknown) => Promise<boolean>
}

/**
 * Runs the command that `argv` names.
 *
 * @returns the exit code: 0 for success, 1 for a failure, 2 for arguments that are not understood.
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
  const entry = program.commands.find((known) => known.name === name)
  if (entry === undefined) {
    environment.err(`${program.name}: unknown command '${name}'\n\n${usageOf(program)}`)
    return USAGE_ERROR
  }
  return await runCommand(program, entry, rest, environment)
}

/** Loads nothing before a command is named: `--version` and `--help` cost little more than Node itself. */
async function runCommand(
  program: Program,
  entry: CommandEntry,
  argv: readonly string[],
  environment: ProcessEnvironment,
): Promise<number> {
  const command = await entry.load()
  const { readResultFormat, reportFailure, reportProblem } = await import('@tutti/chassis')
  const output = { ...environment, errorFormat: readResultFormat(command.flags, argv) }
  try {
    return await command.run(argv, output)
  } catch (error) {
    const running = `${program.name} ${entry.name}`
    if (error instanceof Error && (await program.isOfOthers?.(error)) === true) {
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
