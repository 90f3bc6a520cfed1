import { InferenceClient } from '@tutti/protocol/client'
import { makeFixtureRepository } from './fixture.ts'
import { type Form, sendBy } from './forms.ts'
import type { Ratios } from './history.ts'
import { type BenchServer, startEmptyServer, startTutti, WITH_REST } from './servers.ts'
import { compareSmall, GRPC_LEVELS, type Level, ROUNDS, requestsOf } from './small-rounds.ts'
import { readStatistics } from './statistics.ts'

const MODEL = 'identity_fp32'
const FLOATS = 16
const REST_LEVELS = [
  { inFlight: 1, requests: 2000 },
  { inFlight: 16, requests: 4000 },
  { inFlight: 64, requests: 8000 },
] as const

const values = Float32Array.from({ length: FLOATS }, (_, i) => i + 0.5)
const input = { name: 'x', datatype: 'FP32', shape: [1, FLOATS] } as const
const request = {
  modelName: MODEL,
  inputs: [{ ...input, data: new Uint8Array(values.buffer) }],
} as const

/** Requests per second of a 16-float model, over those of a gRPC and of a REST server that do nothing. */
export async function benchSmall(nodeFlags: readonly string[]): Promise<Ratios> {
  const repository = makeFixtureRepository(MODEL)
  const tutti = await startTutti(repository.path, { nodeFlags, flags: WITH_REST })
  const client = new InferenceClient({ address: `127.0.0.1:${tutti.grpcPort}` })
  try {
    await checkAnswer(client)
    return { ...(await benchGrpc(tutti, client)), ...(await benchRest(tutti)) }
  } finally {
    client.close()
    await tutti.stop()
    repository.remove()
  }
}

async function benchGrpc(tutti: BenchServer, client: InferenceClient): Promise<Ratios> {
  const empty = await startEmptyServer('grpc')
  try {
    // The load does not look at gRPC's status, so the server's own count says whether the answers were right.
    const before = await readStatistics(client, MODEL)
    console.log(`\nsmall: ${MODEL} [1,${FLOATS}] by gRPC on one connection, medians of ${ROUNDS}`)
    const rounds = { name: 'small', tutti, empty, levels: GRPC_LEVELS }
    const ratios = await compareSmall({ ...rounds, load: loadBy('gRPC') })
    const right = (await readStatistics(client, MODEL)).successes - before.successes
    const sent = requestsOf(rounds)
    if (right !== sent) throw new Error(`${right} of ${sent} requests were answered well`)
    console.log(`all ${sent} requests were answered well`)
    return ratios
  } finally {
    await empty.stop()
  }
}

/** The same by REST, a connection for each request in flight: all in JSON, and with the tensors as binary data. */
async function benchRest(tutti: BenchServer): Promise<Ratios> {
  const empty = await startEmptyServer('rest')
  try {
    const all: Record<string, number> = {}
    for (const form of ['JSON', 'binary'] as const) {
      console.log(`\nsmall: the same by REST, ${form}, a connection for each request in flight`)
      const load = loadBy(`REST ${form}`)
      const name = `small, REST ${form}`
      const rounds = { name, tutti, empty, levels: REST_LEVELS, load }
      Object.assign(all, await compareSmall(rounds))
    }
    return all
  } finally {
    await empty.stop()
  }
}

function loadBy(form: Form): (server: BenchServer, level: Level) => Promise<number> {
  const send = sendBy(form, request)
  return async (server, level) => (await send(server, level)).perSecond
}

async function checkAnswer(client: InferenceClient): Promise<void> {
  const { outputs } = await client.infer(request)
  const [output] = outputs
  if (output === undefined || Buffer.compare(output.data, request.inputs[0].data) !== 0) {
    throw new Error(`${MODEL} did not answer with its input`)
  }
}
