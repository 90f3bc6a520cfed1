import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startNatsServer } from '@tutti/chassis/testing'
import { InferenceClient } from '@tutti/protocol/client'
import { cpuUs, median, printTable, quantile } from './figures.ts'
import { startEndpoint, startTutti, untilReady } from './servers.ts'

const REPOSITORY = 'model_repository'
const ENSEMBLE = 'ens_face_restoration_v2.1'
const STEPS = ['pre_gfpgan', 'infer_face_restoration_v2.1', 'post_gfpgan'] as const
/** The repository's other models would be in the figures, and need a Python. */
const FLAGS = ['--model-control-mode=explicit', `--load-model=${ENSEMBLE}`] as const
const SIDE = 512
const ONE_BY_ONE = 40
/** As many as V8 takes to compile what each of the processes executes. */
const WARM_UPS = 40
const ROUNDS = 5
const IN_FLIGHT = 4
const REQUESTS_PER_ROUND = 16

const data = Uint8Array.from({ length: SIDE * SIDE * 3 }, (_, i) => (i * 2_654_435_761) >>> 24)
const request = {
  modelName: ENSEMBLE,
  inputs: [{ name: 'raw_image', datatype: 'UINT8', shape: [SIDE, SIDE, 3], data }],
} as const

/** As our chart runs it: with Go's default, half of the broker's time is its collector's. */
const BROKER_ENV = { GOGC: '400' } as const

/** The ensemble as clients see it, with all processes that serve it. */
interface Deployment {
  readonly name: string
  readonly client: InferenceClient
  readonly pids: readonly number[]
}

/** The face ensemble in one process, against router, three steps and broker as processes of their own: over NATS, and directly. */
export async function benchProcesses(nodeFlags: readonly string[]): Promise<void> {
  const opened = new AsyncDisposableStack()
  try {
    const sockets = await mkdtemp(join(tmpdir(), 'tutti-bench-'))
    opened.defer(() => rm(sockets, { recursive: true }))
    const direct = ['--direct=unix', `--direct-directory=${sockets}`]
    const all = [
      await openOne(opened, nodeFlags),
      await openSeveral(opened, 'router, 3 steps, broker', { nodeFlags, flags: [] }),
      await openSeveral(opened, 'the same with --direct=unix', { nodeFlags, flags: direct }),
    ] as const
    for (let i = 0; i < WARM_UPS; i += 1) await compareAnswers(all)
    console.log(`\nprocesses: ${ENSEMBLE} at ${SIDE} x ${SIDE}`)
    await oneByOne(all)
    await loaded(all)
  } finally {
    await opened.disposeAsync()
  }
}

/** The first is what the others are compared with. */
type Deployments = readonly [Deployment, ...Deployment[]]

async function openOne(
  opened: AsyncDisposableStack,
  flags: readonly string[],
): Promise<Deployment> {
  const server = await startTutti(REPOSITORY, { flags: FLAGS, nodeFlags: flags })
  opened.defer(() => server.stop())
  const client = openClient(opened, server.grpcPort)
  return { name: 'one process', client, pids: [server.pid] }
}

async function openSeveral(
  opened: AsyncDisposableStack,
  name: string,
  {
    nodeFlags,
    flags,
  }: { readonly nodeFlags: readonly string[]; readonly flags: readonly string[] },
): Promise<Deployment> {
  const broker = await startNatsServer({ env: BROKER_ENV })
  opened.defer(() => broker.stop())
  const o = { repository: REPOSITORY, broker: broker.url, nodeFlags }
  const steps = await Promise.all(
    STEPS.map((step) => startEndpoint('step', { ...o, flags: [`--model=${step}`, ...flags] })),
  )
  for (const step of steps) opened.defer(() => step.stop())
  const router = await startEndpoint('router', { ...o, flags })
  opened.defer(() => router.stop())
  const client = openClient(opened, router.grpcPort)
  await untilReady(client, ENSEMBLE)
  return { name, client, pids: [broker.pid, router.pid, ...steps.map(({ pid }) => pid)] }
}

function openClient(opened: AsyncDisposableStack, port: number): InferenceClient {
  const client = new InferenceClient({ address: `127.0.0.1:${port}` })
  opened.defer(async () => client.close())
  return client
}

async function ask({ client }: Deployment): Promise<Uint8Array> {
  const { outputs } = await client.infer(request)
  const output = outputs[0]?.data
  if (output?.byteLength === data.byteLength) return output
  throw new Error(`${ENSEMBLE} gave ${output?.byteLength} bytes, want ${data.byteLength}`)
}

async function compareAnswers([one, ...others]: Deployments): Promise<void> {
  const answer = await ask(one)
  for (const other of others) {
    if (Buffer.compare(answer, await ask(other)) === 0) continue
    throw new Error(`${ENSEMBLE} gave other bytes over several processes`)
  }
}

/** The time that a round of a deployment took. */
interface Measured {
  readonly ms: number
  readonly cpuMs: number
}

async function measured({ pids }: Deployment, act: () => Promise<void>): Promise<Measured> {
  const cpuMs = (): number => pids.reduce((sum, pid) => sum + cpuUs(pid), 0) / 1000
  const [before, started] = [cpuMs(), performance.now()]
  await act()
  return { ms: performance.now() - started, cpuMs: cpuMs() - before }
}

/** All in turn, so many rounds. @returns for each deployment its rounds. */
async function inTurn(
  all: Deployments,
  rounds: number,
  act: (deployment: Deployment) => Promise<void>,
): Promise<readonly (readonly Measured[])[]> {
  const taken: Measured[][] = all.map(() => [])
  for (let i = 0; i < rounds; i += 1) {
    for (const [at, deployment] of all.entries()) {
      taken[at]?.push(await measured(deployment, () => act(deployment)))
    }
  }
  return taken
}

/** Request by request. The kernel counts processor time in hundredths of a second, so it is their mean. */
async function oneByOne(all: Deployments): Promise<void> {
  const taken = await inTurn(all, ONE_BY_ONE, async (one) => void (await ask(one)))
  const first = median((taken[0] ?? []).map(({ ms }) => ms))
  console.log(`\none request in flight, ${ONE_BY_ONE} of each`)
  printTable([
    ['', 'p50 ms', 'p90 ms', 'cpu ms per request', 'p50 over one process'],
    ...taken.map((rounds, i) => {
      const times = rounds.map(({ ms }) => ms)
      const cpu = rounds.reduce((sum, { cpuMs }) => sum + cpuMs, 0) / ONE_BY_ONE
      const figures = [median(times), quantile(times, 0.9), cpu].map((ms) => ms.toFixed(1))
      return [all[i]?.name ?? '', ...figures, (median(times) / first).toFixed(3)]
    }),
  ])
}

async function loaded(all: Deployments): Promise<void> {
  const taken = await inTurn(all, ROUNDS, askMany)
  const [first = []] = taken
  console.log(`\n${IN_FLIGHT} requests in flight, ${ROUNDS} rounds of ${REQUESTS_PER_ROUND}`)
  printTable([
    ['', 'requests/s', 'cpu ms per request', 'requests/s over one process'],
    ...taken.map((rounds, i) => {
      const rate = median(rounds.map(({ ms }) => REQUESTS_PER_ROUND / (ms / 1000)))
      const cpu = median(rounds.map(({ cpuMs }) => cpuMs)) / REQUESTS_PER_ROUND
      const ratios = rounds.map(({ ms }, round) => (first[round]?.ms ?? Number.NaN) / ms)
      const [low, high] = [Math.min(...ratios), Math.max(...ratios)].map((r) => r.toFixed(3))
      const over = `${median(ratios).toFixed(3)} (${low} to ${high})`
      return [all[i]?.name ?? '', rate.toFixed(2), cpu.toFixed(1), over]
    }),
  ])
}

async function askMany(deployment: Deployment): Promise<void> {
  let left = REQUESTS_PER_ROUND
  const clientLoop = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      await ask(deployment)
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, clientLoop))
}
