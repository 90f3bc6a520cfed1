import { InferenceClient } from '@tutti/protocol/client'
import { median, peakBytes, printTable, resetPeak, residentBytes } from './figures.ts'
import { makeFixtureRepository } from './fixture.ts'
import { startTutti } from './servers.ts'

const MODEL = 'big_identity'
const SHAPE = [512, 1365, 3]
const IN_FLIGHT = 16
const CONNECTIONS = 4
const REQUESTS_PER_ROUND = 160
const ROUNDS = 5
const MEGABYTE = 1e6
/** The bound that we hold ourselves to: three times what is in flight, and this for the process itself. */
const BASE_BYTES = 300 * MEGABYTE

const floats = Float32Array.from({ length: 512 * 1365 * 3 }, (_, i) => i)
const data = new Uint8Array(floats.buffer)
const request = {
  modelName: MODEL,
  inputs: [{ name: 'x', datatype: 'FP32', shape: SHAPE, data }],
} as const

/** The most memory that a server takes with large requests in flight. */
export async function benchMemory(nodeFlags: readonly string[]): Promise<void> {
  const repository = makeFixtureRepository(MODEL)
  const server = await startTutti(repository.path, { nodeFlags })
  const address = `127.0.0.1:${server.grpcPort}`
  const clients = Array.from({ length: CONNECTIONS }, () => new InferenceClient({ address }))
  try {
    const idle = residentBytes(server.pid)
    const peaks: number[] = []
    const rates: number[] = []
    for (let round = 0; round < ROUNDS; round += 1) {
      resetPeak(server.pid)
      const started = performance.now()
      await runRound(clients)
      rates.push(REQUESTS_PER_ROUND / ((performance.now() - started) / 1000))
      peaks.push(peakBytes(server.pid))
    }
    const inFlight = IN_FLIGHT * data.byteLength
    const bound = 3 * inFlight + BASE_BYTES
    const megabytes = (bytes: number): string => (bytes / MEGABYTE).toFixed(0)
    console.log(
      `\nmemory: ${MODEL}, ${IN_FLIGHT} requests of ${megabytes(data.byteLength)} MB in flight`,
    )
    console.log(
      `${ROUNDS} rounds of ${REQUESTS_PER_ROUND} requests over ${CONNECTIONS} connections`,
    )
    printTable([
      ['resident', 'MB'],
      ['before the first request', megabytes(idle)],
      ['peak, median of the rounds', megabytes(median(peaks))],
      ['peak, worst round', megabytes(Math.max(...peaks))],
      ['bound', megabytes(bound)],
    ])
    console.log(`requests per second: ${median(rates).toFixed(1)}`)
  } finally {
    for (const client of clients) client.close()
    await server.stop()
    repository.remove()
  }
}

/** Keeps the requests in flight until all of a round are answered. */
async function runRound(clients: readonly InferenceClient[]): Promise<void> {
  let left = REQUESTS_PER_ROUND
  const clientLoop = async (client: InferenceClient): Promise<void> => {
    while (left > 0) {
      left -= 1
      const { outputs } = await client.infer(request)
      if (outputs[0] === undefined || Buffer.compare(outputs[0].data, data) !== 0) {
        throw new Error(`${MODEL} did not answer with its input`)
      }
    }
  }
  const clientLoops = Array.from({ length: IN_FLIGHT / clients.length }, () =>
    clients.map(clientLoop),
  ).flat()
  await Promise.all(clientLoops)
}
