import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { InferenceClient } from '@tutti/protocol'
import { peakBytes, printTable, resetPeak, residentBytes } from './figures.ts'
import { ROOT, startTutti } from './servers.ts'

const FIXTURES = `${ROOT}model_repository/.variants/fixtures/basic/`
const MODEL = 'big_identity'
const IN_FLIGHT = 16
const SHAPE = [1024, 683, 3] as const
const ROUNDS = 8
const MEBIBYTE = 1024 * 1024

const values = new Float32Array(SHAPE[0] * SHAPE[1] * SHAPE[2]).fill(1.5)
const request = {
  modelName: MODEL,
  inputs: [{ name: 'x', datatype: 'FP32', shape: SHAPE, data: new Uint8Array(values.buffer) }],
} as const

/** The most memory that the server takes with 16 requests of 8 MB in flight. */
export async function benchMemory(nodeFlags: readonly string[]): Promise<void> {
  // Only this model: every other one would have threads and sessions of its own.
  const repository = await mkdtemp(join(tmpdir(), 'tutti-bench-'))
  await cp(`${FIXTURES}${MODEL}`, join(repository, MODEL), { recursive: true })
  const server = await startTutti(repository, { nodeFlags })
  const clients = Array.from(
    { length: IN_FLIGHT },
    () => new InferenceClient({ address: `127.0.0.1:${server.grpcPort}` }),
  )
  try {
    const [first] = clients
    await first?.infer(request)
    const idle = residentBytes(server.pid)
    resetPeak(server.pid)
    for (let round = 0; round < ROUNDS; round += 1) {
      await Promise.all(
        clients.map(async (client) => {
          const [output] = (await client.infer(request)).outputs
          if (output?.data.byteLength !== values.byteLength) throw new Error('an answer is short')
        }),
      )
    }
    const bytes = IN_FLIGHT * values.byteLength
    const mebibytes = (size: number): string => (size / MEBIBYTE).toFixed(0)
    console.log(`\nmemory: ${MODEL}, ${IN_FLIGHT} requests of 8 MB at a time, ${ROUNDS} rounds`)
    printTable([
      ['', 'MiB'],
      ['idle', mebibytes(idle)],
      ['bytes of requests in flight', mebibytes(bytes)],
      ['peak', mebibytes(peakBytes(server.pid))],
      ['bound: bytes in flight x 3 + 300 MB', mebibytes(bytes * 3 + 300e6)],
    ])
  } finally {
    for (const client of clients) client.close()
    await server.stop()
    await rm(repository, { recursive: true })
  }
}
