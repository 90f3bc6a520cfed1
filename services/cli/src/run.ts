import { type ProcessEnvironment, reportFailure } from '@tutti/chassis'
import manifest from '../package.json' with { type: 'json' }
import { COMMANDS } from './commands.ts'

const USAGE_ERROR = 2

/**
 * Runs the command that `argv` names.
 *
 * @returns the exit code: 0 well, 1 failed, 2 not understood.
 */
export async function run(
  argv: readonly string[],
  environment: ProcessEnvironment,
): Promise<number> {
  const [name, ...rest] = argv
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    environment.out(usage())
    return name === undefined ? USAGE_ERROR : 0
  }
  if (name === '--version') {
    environment.out(`tutti ${manifest.version}\n`)
    return 0
  }
  const command = COMMANDS.find((known) => known.name === name)
  if (command === undefined) {
    environment.err(`tutti: unknown command '${name}'\n\n${usage()}`)
    return USAGE_ERROR
  }
  try {
    return await command.run(rest, environment)
  } catch (error) {
    return reportFailure(`tutti ${name}`, error, environment)
  }
}

function usage(): string {
  const width = Math.max(...COMMANDS.map((command) => command.name.length))
  const lines = COMMANDS.map((c) => `  ${c.name.padEnd(width)}  ${c.description}`)
  return `Usage: tutti COMMAND [FLAGS]\n\n${lines.join('\n')}\n\ntutti COMMAND --help lists a command's flags, tutti --version prints the version.\n`
}
