import { fileURLToPath } from 'node:url'
import { type StartedProcess, startProcess } from '@tutti/chassis/testing'

/** The root of the checkout. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** A server process of its own, on the loopback. Whoever started it stops it. */
export interface BenchServer {
  readonly pid: number
  readonly grpcPort: number
  stop(): Promise<void>
}

/** What a server says on its standard output once it serves. */
interface ReadyLine {
  readonly message?: unknown
  readonly grpcPort?: unknown
}

function parseReady(line: string): ReadyLine | undefined {
  try {
    const parsed: unknown = JSON.parse(line)
    if (typeof parsed !== 'object' || parsed === null) return undefined
    const ready: ReadyLine = parsed
    return ready.message === 'server ready' ? ready : undefined
  } catch {
    return undefined
  }
}

async function start(args: readonly string[], nodeFlags: readonly string[]): Promise<BenchServer> {
  const started: StartedProcess = await startProcess(process.execPath, [...nodeFlags, ...args], {
    cwd: ROOT,
    env: process.env,
    readyWhen: (line) => parseReady(line) !== undefined,
    readyTimeoutMs: 120_000,
  })
  const ready = started.lines.map(parseReady).find((line) => line !== undefined)
  return {
    pid: started.pid,
    grpcPort: Number(ready?.grpcPort),
    stop: async () => {
      await started.stop()
    },
  }
}

/**
 * Starts `tutti serve` over one repository.
 *
 * @param repository - a folder, absolute or from the root of the checkout.
 * @param o.nodeFlags - for example `--cpu-prof`.
 */
export function startTutti(
  repository: string,
  o: { readonly flags?: readonly string[]; readonly nodeFlags?: readonly string[] } = {},
): Promise<BenchServer> {
  const doors = ['--grpc-address=127.0.0.1', '--grpc-port=0', '--allow-http=false']
  const metrics = ['--metrics-address=127.0.0.1', '--metrics-port=0']
  const args = [
    'services/cli/dist/main.js',
    'serve',
    `--model-repository=${repository}`,
    ...doors,
    ...metrics,
    ...(o.flags ?? []),
  ]
  return start(args, o.nodeFlags ?? [])
}

/** Starts the server that `small` compares with: grpc-js as it comes, one unary method that returns its request. */
export function startEmptyServer(): Promise<BenchServer> {
  return start([fileURLToPath(new URL('./empty-server.js', import.meta.url))], [])
}
