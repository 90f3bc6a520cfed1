import type { ProcessEnvironment } from '@tutti/chassis'
import { KUBECTL_PROGRAM } from '../kubectl/kubectl-program.ts'
import { run } from '../run.ts'
import { runProgram } from '../run-program.ts'

interface CommandInput {
  readonly input?: Uint8Array | string
  readonly env?: Record<string, string>
  readonly signals?: ProcessEnvironment['signals']
}

/** Runs a command of `tutti` in this process. */
export function runCommand(argv: readonly string[], o: CommandInput = {}) {
  return runIn(o, (environment) => run(argv, environment))
}

/** Runs a command of `kubectl tutti` in this process. */
export function runKubectlCommand(argv: readonly string[], o: CommandInput = {}) {
  return runIn(o, (environment) => runProgram(KUBECTL_PROGRAM, argv, environment))
}

async function runIn(
  { input, env = {}, signals = { listen: () => () => {} } }: CommandInput,
  command: (environment: Parameters<typeof run>[1]) => Promise<number>,
) {
  const printed = { out: '', err: '' }
  const code = await command({
    env,
    out: (text) => (printed.out += text),
    err: (text) => (printed.err += text),
    ...(input !== undefined && {
      input: (async function* () {
        yield input
      })(),
    }),
    signals,
    exit: () => {},
  })
  return { code, ...printed }
}
