import { run } from '../run.ts'

/** Runs `tutti infer` in this process. @param argv - after `infer`. */
export async function infer(
  argv: readonly string[],
  o: { readonly input?: Uint8Array; readonly env?: Record<string, string> } = {},
) {
  const printed = { out: '', err: '' }
  const { input } = o
  const code = await run(['infer', ...argv], {
    env: o.env ?? {},
    out: (text) => (printed.out += text),
    err: (text) => (printed.err += text),
    ...(input !== undefined && {
      input: (async function* () {
        yield input
      })(),
    }),
    signals: { listen: () => () => {} },
    exit: () => {},
  })
  return { code, ...printed }
}
