import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { SERVING_FLAGS } from '@tutti/chassis/runtime'
import { type StartedProcess, startProcess } from '@tutti/chassis/testing'
import type { InferenceClient } from '@tutti/protocol/client'

/** The root of the checkout. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** A server process of its own, on the loopback. The caller stops it. */
export interface BenchServer {
  readonly pid: number
  /** NaN of a server without gRPC. */
  readonly grpcPort: number
  /** NaN of a server without REST. */
  readonly httpPort: number
  /** NaN of a server without a console. */
  readonly consolePort: number
  stop(): Promise<void>
}

/** The line that a server writes on its standard output once it serves. */
interface ReadyLine {
  readonly message?: unknown
  readonly grpcPort?: unknown
  readonly httpPort?: unknown
  readonly consolePort?: unknown
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

async function start(
  args: readonly string[],
  nodeFlags: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<BenchServer> {
  const started: StartedProcess = await startProcess(process.execPath, [...nodeFlags, ...args], {
    cwd: ROOT,
    env: { ...process.env, ...env },
    readyWhen: (line) => parseReady(line) !== undefined,
    readyTimeoutMs: 120_000,
  })
  const ready = started.lines.map(parseReady).find((line) => line !== undefined)
  return {
    pid: started.pid,
    grpcPort: Number(ready?.grpcPort ?? Number.NaN),
    httpPort: Number(ready?.httpPort ?? Number.NaN),
    consolePort: Number(ready?.consolePort ?? Number.NaN),
    stop: async () => {
      await started.stop()
    },
  }
}

const TUTTI = 'services/cli/dist/main.js'
const GRPC_AND_METRICS = [
  '--grpc-address=127.0.0.1',
  '--grpc-port=0',
  '--metrics-address=127.0.0.1',
  '--metrics-port=0',
] as const
const LISTENERS = [...GRPC_AND_METRICS, '--allow-http=false'] as const
const ALL_LISTENERS = [...GRPC_AND_METRICS, '--http-address=127.0.0.1', '--http-port=0'] as const

/** Flags that open REST beside gRPC. */
export const WITH_REST = ['--allow-http=true', '--http-address=127.0.0.1', '--http-port=0'] as const

interface TuttiOptions {
  readonly flags?: readonly string[]
  /** For example `--cpu-prof`. */
  readonly nodeFlags?: readonly string[]
  /** On top of this process's own. */
  readonly env?: Readonly<Record<string, string>>
}

/**
 * Starts `tutti serve` over one repository.
 *
 * @param repository - a folder, absolute or from the root of the checkout.
 */
export function startTutti(repository: string, o: TuttiOptions = {}): Promise<BenchServer> {
  const args = [
    TUTTI,
    'serve',
    `--model-repository=${repository}`,
    ...LISTENERS,
    ...(o.flags ?? []),
  ]
  return start(args, o.nodeFlags ?? [], o.env)
}

/** Starts `tutti step` or `tutti router` on a broker. Who asks a router waits for what it needs: see `untilReady`. */
export function startEndpoint(
  role: 'step' | 'router',
  o: TuttiOptions & { readonly repository: string; readonly broker: string },
): Promise<BenchServer> {
  const from = [`--model-repository=${o.repository}`, `--nats=${o.broker}`]
  return start([TUTTI, role, ...from, ...LISTENERS, ...(o.flags ?? [])], o.nodeFlags ?? [])
}

/** Waits until a model can be asked. */
export async function untilReady(client: InferenceClient, name: string): Promise<void> {
  while (!(await isReady(client, name))) await sleep(READY_CHECK_MS)
}

const READY_CHECK_MS = 50

function isReady(client: InferenceClient, name: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    client.objects.ModelReady({ name }, (error, answer) => {
      if (error !== null) reject(error)
      else resolve(answer?.ready === true)
    })
  })
}

/** Starts a program of this repository that serves gRPC, REST and metrics, each on a free port. */
export function startProgram(
  args: readonly string[],
  o: Omit<TuttiOptions, 'flags'> = {},
): Promise<BenchServer> {
  return start([...args, ...ALL_LISTENERS], o.nodeFlags ?? [], o.env)
}

/** Starts a server that gives back what came, on our framing or on Node's. Both run as our servers do. */
export function startFramingServer(
  name: 'http1' | 'http2',
  kind: 'own' | 'node',
  nodeFlags: readonly string[],
): Promise<BenchServer> {
  const file = fileURLToPath(new URL(`./empty-${name}-server.js`, import.meta.url))
  return start([file, kind], [...SERVING_FLAGS, ...nodeFlags])
}

/** Starts a server that `small` compares with. */
export function startEmptyServer(kind: 'grpc' | 'rest'): Promise<BenchServer> {
  return start([fileURLToPath(new URL(`./empty-${kind}-server.js`, import.meta.url))], [])
}
