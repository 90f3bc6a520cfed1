import { setTimeout as delay } from 'node:timers/promises'
import { type StartedProcess, startProcess } from '@tutti/chassis/testing'
import { InferenceClient } from '@tutti/protocol'
import { parseLine } from '../serving.ts'
import {
  type Executed,
  type InspectedProcess,
  inspectProcess,
  sourcesOf,
} from './inspected-process.ts'

/** Two heartbeats and some timers: what runs then runs without requests too. */
const IDLE_MS = 3000

/** A timer may meet one of them, but not all. */
const REQUESTS = 3

/** The checkout to measure, and what its programs are told. */
export interface PathOptions {
  /** Built. */
  readonly root: string
  readonly repository: string
  /** A model that takes `X`, FP32 [1, 16]. */
  readonly model: string
  /** Stops what was started. */
  readonly teardown: (stop: () => unknown) => void
}

/** The source files that every request executes, relative to the root, sorted. */
export async function pathInOneProcess(o: PathOptions): Promise<readonly string[]> {
  const server = await start(o, ['serve', `--model-repository=${o.repository}`])
  return await executedByRequest(o, server.grpcPort, [server])
}

/** The same with a router and a step over NATS. @param url - of the nats-server. */
export async function pathOverNats(o: PathOptions, url: string): Promise<readonly string[]> {
  const common = [
    `--nats=${url}`,
    '--repository-name=default',
    `--model-repository=${o.repository}`,
  ]
  const step = await start(o, ['step', ...common])
  const router = await start(o, ['router', ...common])
  return await executedByRequest(o, router.grpcPort, [router, step])
}

interface Started {
  readonly grpcPort: number
  readonly inspected: InspectedProcess
}

async function start(o: PathOptions, args: readonly string[]): Promise<Started> {
  const loopback = ['grpc', 'http', 'metrics'].flatMap((name) => [
    `--${name}-address=127.0.0.1`,
    `--${name}-port=0`,
  ])
  const main = `${o.root}/services/cli/dist/main.js`
  const started = await startProcess(
    process.execPath,
    ['--inspect=127.0.0.1:0', main, ...args, ...loopback],
    {
      cwd: o.root,
      readyWhen: (line) => parseLine(line)['message'] === 'server ready',
      readyTimeoutMs: 120_000,
    },
  )
  o.teardown(() => started.stop('SIGKILL'))
  const ready = started.lines.map(parseLine).find((line) => line['message'] === 'server ready')
  const inspected = await inspectProcess(inspectorUrl(started))
  o.teardown(() => inspected.close())
  return { grpcPort: Number(ready?.['grpcPort']), inspected }
}

function inspectorUrl(started: StartedProcess): string {
  const line = started.lines.find((text) => text.startsWith('Debugger listening on '))
  if (line === undefined) throw new Error('no inspector listens')
  return line.slice('Debugger listening on '.length)
}

async function executedByRequest(
  o: PathOptions,
  grpcPort: number,
  started: readonly Started[],
): Promise<readonly string[]> {
  const client = new InferenceClient({ address: `127.0.0.1:${grpcPort}` })
  o.teardown(() => client.close())
  const take = (): Promise<readonly Executed[]> =>
    Promise.all(started.map(({ inspected }) => inspected.executed()))
  // The first compiles, connects and fills caches.
  await untilAnswered(client, o.model)
  await delay(IDLE_MS)
  await take()
  await delay(IDLE_MS)
  const idle = await take()
  const requests = await inOrder(REQUESTS, async () => {
    await infer(client, o.model)
    // What follows an answer belongs to the request: statistics, credits, what is released.
    await delay(200)
    return await take()
  })
  const files = started.flatMap((_, i) => {
    const always = inAll(requests.map((executed) => executed[i] ?? new Map()))
    return sourcesOf(o.root, always, idle[i] ?? new Map())
  })
  return [...new Set(files)].toSorted()
}

async function inOrder<T>(count: number, one: () => Promise<T>): Promise<readonly T[]> {
  const all: T[] = []
  for (let i = 0; i < count; i++) all.push(await one())
  return all
}

/** The functions that ran each time. */
function inAll([first = new Map(), ...others]: readonly Executed[]): Executed {
  const always = new Map<string, ReadonlySet<string>>()
  for (const [url, functions] of first) {
    const kept = [...functions].filter((name) => others.every((one) => one.get(url)?.has(name)))
    if (kept.length > 0) always.set(url, new Set(kept))
  }
  return always
}

async function untilAnswered(client: InferenceClient, model: string): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      return await infer(client, model)
    } catch (error) {
      // A router may not have heard of its steps yet.
      if (tries === 50) throw error
      await delay(200)
    }
  }
}

async function infer(client: InferenceClient, modelName: string): Promise<void> {
  const data = Buffer.from(Float32Array.from({ length: 16 }, (_, i) => i).buffer)
  const inputs = [{ name: 'X', datatype: 'FP32' as const, shape: [1, 16], data }]
  await client.infer({ modelName, inputs })
}
