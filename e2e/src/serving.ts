import { fileURLToPath } from 'node:url'
import { type StartedProcess, startProcess } from '@tutti/chassis/testing'

/** The root of the checkout, for paths that tests hand to processes. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url))

const TUTTI = `${ROOT}services/cli/dist/main.js`

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

/** Starts `tutti serve` on free ports of the loopback and waits until it serves. Stop its process in the teardown. */
export async function startServing(o: {
  readonly repositories: readonly string[]
  readonly flags?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}): Promise<Serving> {
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
export function serveArguments(o: {
  readonly repositories: readonly string[]
  readonly flags?: readonly string[]
}): string[] {
  const loopback = ['grpc', 'http', 'metrics'].flatMap((door) => [
    `--${door}-address=127.0.0.1`,
    `--${door}-port=0`,
  ])
  const repositories = o.repositories.map((path) => `--model-repository=${ROOT}${path}`)
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
