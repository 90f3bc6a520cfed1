import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type StartedProcess, startProcess } from '@tutti/chassis/testing'
import type { Test } from 'tap'

/** The root of the checkout, for paths that tests hand to processes. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** The built command, for `node`. */
export const TUTTI = `${ROOT}services/cli/dist/main.js`

/** What a test says about the server that it wants. */
export interface ServeRequest {
  /** Folders, from the root of the checkout or absolute. */
  readonly repositories: readonly string[]
  readonly flags?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

/** A served repository as a client sees it: addresses, nothing else. */
export interface Target {
  readonly grpcPort: number
  readonly httpPort: number
  readonly metricsPort: number
}

/** A `tutti serve` that this test started. */
export interface Serving extends Target {
  readonly process: StartedProcess
}

/** `startServing` for one test: whatever becomes of the test, the server ends with it. */
export async function serve(t: Test, o: ServeRequest): Promise<Serving> {
  const serving = await startServing(o)
  // Tests that care about the end of the server end it themselves; here it must only be gone.
  t.teardown(() => serving.process.stop('SIGKILL'))
  return serving
}

/** Starts `tutti serve` on free ports of the loopback and waits until it serves. Stop its process in the teardown. */
export async function startServing(o: ServeRequest): Promise<Serving> {
  const { serving } = await startTutti(serveArguments(o), o.env)
  return serving
}

/** The command line of `startServing`, for tests that expect the start to fail. */
export function serveArguments(o: Omit<ServeRequest, 'env'>): string[] {
  const repositories = o.repositories.map((path) => `--model-repository=${resolve(ROOT, path)}`)
  return [TUTTI, 'serve', ...repositories, ...LOOPBACK, ...(o.flags ?? [])]
}

/** Flags with which a command listens on free ports of the loopback. */
export const LOOPBACK: readonly string[] = ['grpc', 'http', 'metrics'].flatMap((door) => [
  `--${door}-address=127.0.0.1`,
  `--${door}-port=0`,
])

/** Starts a command of `tutti`, of its whole command line. @returns also what it says of itself when it is ready. */
export async function startTutti(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly serving: Serving; readonly ready: Record<string, unknown> }> {
  const isReady = (line: string): boolean => parseLine(line)['message'] === 'server ready'
  const started = await startProcess(process.execPath, args, {
    cwd: ROOT,
    env: { ...process.env, ...env },
    readyWhen: isReady,
    readyTimeoutMs: 120_000,
  })
  const ready = parseLine(started.lines.find(isReady) ?? '')
  const port = (door: string): number => Number(ready[`${door}Port`])
  const ports = { grpcPort: port('grpc'), httpPort: port('http'), metricsPort: port('metrics') }
  return { serving: { process: started, ...ports }, ready }
}

/** A JSON line as an object; {} for anything else. */
export function parseLine(line: string): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(line)
    return typeof parsed === 'object' && parsed !== null ? { ...parsed } : {}
  } catch {
    return {}
  }
}
