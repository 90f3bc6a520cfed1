import { encodeInferRequest, InferenceClient, inferenceServices } from '@tutti/protocol'
import { cpuUs, median, printTable } from './figures.ts'
import { makeFixtureRepository } from './fixture.ts'
import type { Ratios } from './history.ts'
import { http2Load, toGrpcFrame } from './http2-load.ts'
import { type BenchServer, startEmptyServer, startTutti } from './servers.ts'
import { readStatistics } from './statistics.ts'

const MODEL = 'identity_fp32'
const FLOATS = 16
const ROUNDS = 7
const WARM_UP_REQUESTS = 20_000
/** By the number of requests in flight: a round takes about a second. */
const LEVELS = [
  { inFlight: 1, requests: 4000 },
  { inFlight: 8, requests: 12_000 },
  { inFlight: 64, requests: 20_000 },
] as const

const values = Float32Array.from({ length: FLOATS }, (_, i) => i + 0.5)
const request = {
  modelName: MODEL,
  inputs: [
    {
      name: 'x',
      datatype: 'FP32',
      shape: [1, FLOATS],
      data: new Uint8Array(values.buffer),
    },
  ],
} as const

interface Sample {
  readonly perSecond: number
  readonly cpuUsPerRequest: number
}

/** Requests per second of a 16-float model, over those of a gRPC server that does nothing. */
export async function benchSmall(nodeFlags: readonly string[]): Promise<Ratios> {
  const repository = makeFixtureRepository(MODEL)
  const tutti = await startTutti(repository.path, { nodeFlags })
  const empty = await startEmptyServer()
  const client = new InferenceClient({ address: `127.0.0.1:${tutti.grpcPort}` })
  try {
    await checkAnswer(client)
    // The load does not look at gRPC's status, so the server's own count says whether the answers were right.
    const before = await readStatistics(client, MODEL)
    const rows = [
      [
        'in flight',
        'tutti req/s',
        'empty req/s',
        'ratio',
        'worst',
        'best',
        'cpu us',
        'empty cpu us',
      ],
    ]
    const all: Record<string, number> = {}
    let sent = WARM_UP_REQUESTS
    for (const server of [tutti, empty]) await sample(server, 64, WARM_UP_REQUESTS)
    for (const { inFlight, requests } of LEVELS) {
      const rounds = []
      for (let round = 0; round < ROUNDS; round += 1) {
        rounds.push({
          tutti: await sample(tutti, inFlight, requests),
          empty: await sample(empty, inFlight, requests),
        })
        sent += requests
      }
      rows.push(toRow(inFlight, rounds))
      const ratios = rounds.map((round) => round.tutti.perSecond / round.empty.perSecond)
      all[`small, ${inFlight} in flight: requests/s`] = median(ratios)
    }
    const right = (await readStatistics(client, MODEL)).successes - before.successes
    if (right !== sent) throw new Error(`${right} of ${sent} requests were answered well`)
    console.log(`\nsmall: ${MODEL} [1,${FLOATS}] on one connection`)
    console.log(`medians of ${ROUNDS} rounds; all ${sent} requests were answered well`)
    printTable(rows)
    return all
  } finally {
    client.close()
    await Promise.all([tutti.stop(), empty.stop()])
    repository.remove()
  }
}

async function sample(server: BenchServer, inFlight: number, requests: number): Promise<Sample> {
  const body = toGrpcFrame(encodeInferRequest(request))
  const { path } = inferenceServices().inference.ModelInfer
  const cpuBefore = cpuUs(server.pid)
  const { perSecond } = await http2Load({ port: server.grpcPort, path, body, inFlight, requests })
  return { perSecond, cpuUsPerRequest: (cpuUs(server.pid) - cpuBefore) / requests }
}

function toRow(
  inFlight: number,
  rounds: readonly { readonly tutti: Sample; readonly empty: Sample }[],
): string[] {
  const ratios = rounds.map((round) => round.tutti.perSecond / round.empty.perSecond)
  const whole = (read: (round: (typeof rounds)[number]) => number) =>
    median(rounds.map(read)).toFixed(0)
  return [
    String(inFlight),
    whole((round) => round.tutti.perSecond),
    whole((round) => round.empty.perSecond),
    median(ratios).toFixed(2),
    Math.min(...ratios).toFixed(2),
    Math.max(...ratios).toFixed(2),
    whole((round) => round.tutti.cpuUsPerRequest),
    whole((round) => round.empty.cpuUsPerRequest),
  ]
}

async function checkAnswer(client: InferenceClient): Promise<void> {
  const { outputs } = await client.infer(request)
  const [output] = outputs
  if (output === undefined || Buffer.compare(output.data, request.inputs[0].data) !== 0) {
    throw new Error(`${MODEL} did not answer with its input`)
  }
}
