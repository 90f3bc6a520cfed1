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
  const started = await startProcess(process.execPath, serveArguments(o), {
    cwd: ROOT,
    env: { ...process.env, ...o.env },
    readyWhen: (line) => parseLine(line)['message'] === 'server ready',
    readyTimeoutMs: 120_000,
  })
  const ready = started.lines.map(parseLine).find((line) => line['message'] === 'server ready')
  return {
    process: started,
    grpcPort: Number(ready?.['grpcPort']),
    httpPort: Number(ready?.['httpPort']),
    metricsPort: Number(ready?.['metricsPort']),
  }
}

/** The command line of `startServing`, for tests that expect the start to fail. */
export function serveArguments(o: Omit<ServeRequest, 'env'>): string[] {
  const loopback = ['grpc', 'http', 'metrics'].flatMap((door) => [
    `--${door}-address=127.0.0.1`,
    `--${door}-port=0`,
  ])
  const repositories = o.repositories.map((path) => `--model-repository=${resolve(ROOT, path)}`)
  return [TUTTI, 'serve', ...repositories, ...loopback, ...(o.flags ?? [])]
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
