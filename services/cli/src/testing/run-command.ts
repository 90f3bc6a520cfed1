import type { ProcessEnvironment } from '@tutti/chassis'
import { run } from '../run.ts'

/** Runs a command of `tutti` in this process. */
export async function runCommand(
  argv: readonly string[],
  o: {
    readonly input?: Uint8Array | string
    readonly env?: Record<string, string>
    readonly signals?: ProcessEnvironment['signals']
  } = {},
) {
  const printed = { out: '', err: '' }
  const { input } = o
  const code = await run(argv, {
    env: o.env ?? {},
    out: (text) => (printed.out += text),
    err: (text) => (printed.err += text),
    ...(input !== undefined && {
      input: (async function* () {
        yield input
      })(),
    }),
    signals: o.signals ?? { listen: () => () => {} },
    exit: () => {},
  })
  return { code, ...printed }
}
