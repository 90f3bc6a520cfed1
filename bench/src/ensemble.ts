import { InferenceClient } from '@tutti/protocol/client'
import { DirectChain } from './direct-chain.ts'
import { cpuUs, median, printTable, quantile } from './figures.ts'
import { ROOT, startTutti } from './servers.ts'
import { readStatistics } from './statistics.ts'

const REPOSITORY = 'model_repository'
const ENSEMBLE = 'ens_face_restoration_v2.1'
const STEPS = ['pre_gfpgan', 'infer_face_restoration_v2.1', 'post_gfpgan'] as const
/** The repository's other models would be in the figures, and need a Python. */
const FLAGS = ['--model-control-mode=explicit', `--load-model=${ENSEMBLE}`] as const
const SIDE = 512
const WARM_UPS = 5
const ROUNDS = 60

const data = Uint8Array.from({ length: SIDE * SIDE * 3 }, (_, i) => (i * 2_654_435_761) >>> 24)
const shape = [SIDE, SIDE, 3]
const request = {
  modelName: ENSEMBLE,
  inputs: [{ name: 'raw_image', datatype: 'UINT8', shape, data }],
} as const

interface Round {
  /** All in milliseconds: at the client, in the served engines, in the same models run directly. */
  readonly wall: number
  readonly served: number
  readonly direct: number
}

/** Measures what the face ensemble takes, over what its engines take of it. */
export async function benchEnsemble(nodeFlags: readonly string[]): Promise<void> {
  const server = await startTutti(REPOSITORY, { flags: FLAGS, nodeFlags })
  const client = new InferenceClient({ address: `127.0.0.1:${server.grpcPort}` })
  const modelFiles = STEPS.map((step) => `${ROOT}${REPOSITORY}/${step}/1/model.onnx`)
  const chain = await DirectChain.open({ modelFiles, shape, data })
  try {
    for (let i = 0; i < WARM_UPS; i += 1) await runRound(client, chain)
    const cpuBefore = cpuUs(server.pid)
    const rounds: Round[] = []
    for (let i = 0; i < ROUNDS; i += 1) rounds.push(await runRound(client, chain))
    const cpuMs = (cpuUs(server.pid) - cpuBefore) / ROUNDS / 1000
    print(rounds, cpuMs)
  } finally {
    client.close()
    await Promise.all([chain.close(), server.stop()])
  }
}

async function runRound(client: InferenceClient, chain: DirectChain): Promise<Round> {
  const before = await engineMs(client)
  const started = performance.now()
  const { outputs } = await client.infer(request)
  const wall = performance.now() - started
  if (outputs[0]?.data.byteLength !== data.byteLength) {
    throw new Error(
      `${ENSEMBLE} gave ${outputs[0]?.data.byteLength} bytes, want ${data.byteLength}`,
    )
  }
  const served = (await engineMs(client)) - before
  const direct = (await chain.run()).reduce((sum, ms) => sum + ms, 0)
  return { wall, served, direct }
}

/** Time in the engines of all steps since the server started. */
async function engineMs(client: InferenceClient): Promise<number> {
  let sum = 0
  for (const step of STEPS) sum += (await readStatistics(client, step)).computeInferNs
  return sum / 1e6
}

function row(name: string, values: readonly number[]): string[] {
  return [name, median(values).toFixed(1), quantile(values, 0.9).toFixed(1)]
}

function print(rounds: readonly Round[], cpuMs: number): void {
  const of = (read: (round: Round) => number): number[] => rounds.map(read)
  console.log(
    `\nensemble: ${ENSEMBLE} at ${SIDE} x ${SIDE}, one request at a time, ${ROUNDS} rounds`,
  )
  printTable([
    ['', 'p50 ms', 'p90 ms'],
    row(
      'request, at the client',
      of((round) => round.wall),
    ),
    row(
      'engines while serving (compute_infer)',
      of((round) => round.served),
    ),
    row(
      'the same models run directly',
      of((round) => round.direct),
    ),
  ])
  const wall = median(of((round) => round.wall))
  const overServed = wall / median(of((round) => round.served))
  const overDirect = wall / median(of((round) => round.direct))
  console.log(`request over engines while serving: ${overServed.toFixed(3)}`)
  console.log(`request over models run directly:   ${overDirect.toFixed(3)}`)
  console.log(`server cpu per request: ${cpuMs.toFixed(1)} ms`)
}
