import { startNatsServer } from '@tutti/chassis/testing'
import { InferenceClient } from '@tutti/protocol'
import { cpuUs, median, printTable, quantile } from './figures.ts'
import { startEndpoint, startTutti, untilReady } from './servers.ts'

const REPOSITORY = 'model_repository'
const ENSEMBLE = 'ens_face_restoration_v2.1'
const STEPS = ['pre_gfpgan', 'infer_face_restoration_v2.1', 'post_gfpgan'] as const
/** The repository's other models would be in the figures, and need a Python. */
const FLAGS = ['--model-control-mode=explicit', `--load-model=${ENSEMBLE}`] as const
const SIDE = 512
const ONE_BY_ONE = 40
const WARM_UPS = 4
const ROUNDS = 5
const IN_FLIGHT = 4
const REQUESTS_PER_ROUND = 16

const data = Uint8Array.from({ length: SIDE * SIDE * 3 }, (_, i) => (i * 2_654_435_761) >>> 24)
const request = {
  modelName: ENSEMBLE,
  inputs: [{ name: 'raw_image', datatype: 'UINT8', shape: [SIDE, SIDE, 3], data }],
} as const

/** The ensemble as clients see it, with all processes that serve it. */
interface Deployment {
  readonly client: InferenceClient
  readonly pids: readonly number[]
}

/** The face ensemble in one process, against router, three steps and broker as processes of their own. */
export async function benchProcesses(nodeFlags: readonly string[]): Promise<void> {
  const opened = new AsyncDisposableStack()
  try {
    const one = await openOne(opened, nodeFlags)
    const several = await openSeveral(opened, nodeFlags)
    for (let i = 0; i < WARM_UPS; i += 1) await compareAnswers(one, several)
    console.log(`\nprocesses: ${ENSEMBLE} at ${SIDE} x ${SIDE}`)
    await oneByOne(one, several)
    await loaded(one, several)
  } finally {
    await opened.disposeAsync()
  }
}

async function openOne(
  opened: AsyncDisposableStack,
  flags: readonly string[],
): Promise<Deployment> {
  const server = await startTutti(REPOSITORY, { flags: FLAGS, nodeFlags: flags })
  opened.defer(() => server.stop())
  return { client: openClient(opened, server.grpcPort), pids: [server.pid] }
}

async function openSeveral(
  opened: AsyncDisposableStack,
  nodeFlags: readonly string[],
): Promise<Deployment> {
  const broker = await startNatsServer()
  opened.defer(() => broker.stop())
  const o = { repository: REPOSITORY, broker: broker.url, nodeFlags }
  const steps = await Promise.all(
    STEPS.map((step) => startEndpoint('step', { ...o, flags: [`--model=${step}`] })),
  )
  for (const step of steps) opened.defer(() => step.stop())
  const router = await startEndpoint('router', o)
  opened.defer(() => router.stop())
  const client = openClient(opened, router.grpcPort)
  await untilReady(client, ENSEMBLE)
  return { client, pids: [broker.pid, router.pid, ...steps.map(({ pid }) => pid)] }
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

async function compareAnswers(one: Deployment, several: Deployment): Promise<void> {
  if (Buffer.compare(await ask(one), await ask(several)) === 0) return
  throw new Error(`${ENSEMBLE} gave other bytes over several processes`)
}

function cpuMs({ pids }: Deployment): number {
  return pids.reduce((sum, pid) => sum + cpuUs(pid), 0) / 1000
}

/** The two in turn, request by request. */
async function oneByOne(one: Deployment, several: Deployment): Promise<void> {
  const [cpuOne, cpuSeveral] = [cpuMs(one), cpuMs(several)]
  const rounds: { readonly one: number; readonly several: number }[] = []
  for (let i = 0; i < ONE_BY_ONE; i += 1) {
    rounds.push({ one: await timed(one), several: await timed(several) })
  }
  const row = (name: string, times: readonly number[], cpu: number): string[] => [
    name,
    median(times).toFixed(1),
    quantile(times, 0.9).toFixed(1),
    (cpu / ONE_BY_ONE).toFixed(1),
  ]
  const times = { one: rounds.map((r) => r.one), several: rounds.map((r) => r.several) }
  console.log(`\none request in flight, ${ONE_BY_ONE} of each`)
  printTable([
    ['', 'p50 ms', 'p90 ms', 'cpu ms per request'],
    row('one process', times.one, cpuMs(one) - cpuOne),
    row('router, 3 steps, broker', times.several, cpuMs(several) - cpuSeveral),
  ])
  console.log(`p50 over one process: ${(median(times.several) / median(times.one)).toFixed(3)}`)
}

async function timed(deployment: Deployment): Promise<number> {
  const started = performance.now()
  await ask(deployment)
  return performance.now() - started
}

async function loaded(one: Deployment, several: Deployment): Promise<void> {
  const [cpuOne, cpuSeveral] = [cpuMs(one), cpuMs(several)]
  const rounds: { readonly one: number; readonly several: number }[] = []
  for (let i = 0; i < ROUNDS; i += 1) {
    rounds.push({ one: await perSecond(one), several: await perSecond(several) })
  }
  const requests = ROUNDS * REQUESTS_PER_ROUND
  const row = (name: string, rates: readonly number[], cpu: number): string[] => [
    name,
    median(rates).toFixed(2),
    (cpu / requests).toFixed(1),
  ]
  console.log(`\n${IN_FLIGHT} requests in flight, ${ROUNDS} rounds of ${REQUESTS_PER_ROUND}`)
  printTable([
    ['', 'requests/s', 'cpu ms per request'],
    row(
      'one process',
      rounds.map((r) => r.one),
      cpuMs(one) - cpuOne,
    ),
    row(
      'router, 3 steps, broker',
      rounds.map((r) => r.several),
      cpuMs(several) - cpuSeveral,
    ),
  ])
  const ratios = rounds.map((r) => r.several / r.one)
  const [low, high] = [Math.min(...ratios), Math.max(...ratios)]
  const range = `${low.toFixed(3)} to ${high.toFixed(3)}`
  console.log(`requests/s over one process: ${median(ratios).toFixed(3)} (${range})`)
}

async function perSecond(deployment: Deployment): Promise<number> {
  let left = REQUESTS_PER_ROUND
  const clientLoop = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      await ask(deployment)
    }
  }
  const started = performance.now()
  await Promise.all(Array.from({ length: IN_FLIGHT }, clientLoop))
  return REQUESTS_PER_ROUND / ((performance.now() - started) / 1000)
}
