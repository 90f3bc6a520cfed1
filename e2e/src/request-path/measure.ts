import { setTimeout as delay } from 'node:timers/promises'
import { until } from '@tutti/chassis/testing'
import type { InferenceClient } from '@tutti/protocol/client'
import type { Test } from 'tap'
import { openClient } from '../grpc-client.ts'
import { LOOPBACK, startTutti } from '../serving.ts'
import { BASIC } from '../temp-repository.ts'
import { row } from '../tensors.ts'
import { type Executed, inspectProcess, sourcesOf } from './inspected-process.ts'

/** Two heartbeats and some timers: what runs then runs without requests too. */
const IDLE_MS = 3000

/** A timer may meet one of them, but not all. */
const REQUESTS = 3

/** An ensemble of three steps. */
const MODEL = 'ens_branch_join'

type Started = Awaited<ReturnType<typeof start>>

/** The source files that every request executes, relative to the root, sorted. */
export async function pathInOneProcess(t: Test): Promise<readonly string[]> {
  const server = await start(t, ['serve'])
  return await executedByRequest(t, [server])
}

/** The same with a router and a step over NATS. @param url - of the nats-server. */
export async function pathOverNats(t: Test, url: string): Promise<readonly string[]> {
  const common = [`--nats=${url}`, '--repository-name=default']
  const step = await start(t, ['step', ...common])
  const router = await start(t, ['router', ...common])
  return await executedByRequest(t, [router, step])
}

async function start(t: Test, args: readonly string[]) {
  const all = [...args, `--model-repository=${BASIC}`, ...LOOPBACK]
  const { serving } = await startTutti(all, { env: { NODE_OPTIONS: '--inspect=127.0.0.1:0' } })
  t.teardown(() => serving.process.stop('SIGKILL'))
  const inspected = await inspectProcess(serving.process)
  t.teardown(() => inspected.close())
  return { ...serving, inspected }
}

/** @param started - the first of them takes the requests. */
async function executedByRequest(
  t: Test,
  started: readonly [Started, ...Started[]],
): Promise<readonly string[]> {
  const client = openClient(t, started[0])
  const take = (): Promise<readonly Executed[]> =>
    Promise.all(started.map(({ inspected }) => inspected.executed()))
  // The first compiles, connects and fills caches; a router may not have heard of its steps yet.
  await until('a request is answered', () => infer(client).catch(() => false as const))
  await delay(IDLE_MS)
  await take()
  await delay(IDLE_MS)
  const idle = await take()
  const requests: (readonly Executed[])[] = []
  for (let i = 0; i < REQUESTS; i++) {
    await infer(client)
    // Work that follows an answer belongs to the request: statistics, credits, what is released.
    await delay(200)
    requests.push(await take())
  }
  const files = started.flatMap((_, i) => {
    const always = inAll(requests.map((executed) => executed[i] ?? new Map()))
    return sourcesOf(always, idle[i] ?? new Map())
  })
  return [...new Set(files)].toSorted()
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

function infer(client: InferenceClient): Promise<unknown> {
  return client.infer({ modelName: MODEL, inputs: [row('X')] })
}
