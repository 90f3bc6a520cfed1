import type { ProcessEnvironment } from '@tutti/chassis'

/** The input, environment and signals that a command gets. */
export interface CommandInput {
  readonly input?: Uint8Array | string
  readonly env?: Record<string, string>
  readonly signals?: ProcessEnvironment['signals']
}

/** Runs a command in this process. @returns its exit code and what it printed. */
export async function runIn(
  { input, env = {}, signals = { listen: () => () => {} } }: CommandInput,
  command: (environment: ProcessEnvironment) => Promise<number>,
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
