import { type ProcessEnvironment, parseFlags, printable } from '@tutti/chassis'
import { INFER_FLAGS, openClient } from '@tutti/command-line/client'
import { BENCH_FLAGS } from '../bench/bench-flags.ts'

/** Milliseconds that a user who presses Tab waits at most for a server, unless TUTTI_COMPLETION_MS says otherwise. */
const TIMEOUT_MS = 2000

/** Flags of all commands that name a model of a running server. */
const FLAGS = { ...BENCH_FLAGS, ...INFER_FLAGS }

/**
 * Prints the ready models of a command line's server, sorted, a line each. Prints nothing if there is no server or the command
 * line is not complete, since a shell has no place for errors.
 *
 * @param argv - `--`, and then the words after a command such as `tutti infer`, up to the cursor.
 * @returns the exit code.
 */
export async function printModels(
  argv: readonly string[],
  environment: ProcessEnvironment,
): Promise<number> {
  const names = await listModels(argv[0] === '--' ? argv.slice(1) : argv, environment)
  environment.out(names.map((name) => `${name}\n`).join(''))
  return 0
}

async function listModels(
  words: readonly string[],
  environment: ProcessEnvironment,
): Promise<readonly string[]> {
  try {
    const { values } = parseFlags(FLAGS, words)
    const timeoutMs = Number(environment.env['TUTTI_COMPLETION_MS']) || TIMEOUT_MS
    const client = await openClient(values, environment, { timeoutMs })
    try {
      const names = await client.models()
      // A name in a script's output is a line, and nothing that a terminal obeys.
      return [...new Set(names)].filter((name) => printable(name) === name).toSorted()
    } finally {
      client.close()
    }
  } catch {
    return []
  }
}
