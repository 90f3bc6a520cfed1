import { InferenceClient } from '@tutti/protocol'
import { median, printTable, quantile } from './figures.ts'
import { startTutti } from './servers.ts'
import { readStatistics } from './statistics.ts'

const ENSEMBLE = 'ens_face_restoration_v2.1'
const STEPS = ['pre_gfpgan', 'infer_face_restoration_v2.1', 'post_gfpgan'] as const
const SIDE = 512
const WARM_UP = 5
const REQUESTS = 41

const request = {
  modelName: ENSEMBLE,
  inputs: [
    {
      name: 'raw_image',
      datatype: 'UINT8',
      shape: [SIDE, SIDE, 3],
      // Not constant, so that no step has it easier than with a picture.
      data: Uint8Array.from({ length: SIDE * SIDE * 3 }, (_, i) => (i * 2_654_435_761) >>> 24),
    },
  ],
} as const

/** Latency of the three-step ensemble as its client sees it, over what its engines take for the same request. */
export async function benchEnsemble(nodeFlags: readonly string[]): Promise<void> {
  const server = await startTutti('model_repository', { nodeFlags })
  const client = new InferenceClient({ address: `127.0.0.1:${server.grpcPort}` })
  try {
    for (let i = 0; i < WARM_UP; i += 1) await client.infer(request)
    const latencies: number[] = []
    const engines: number[] = []
    let before = await engineNs(client)
    for (let i = 0; i < REQUESTS; i += 1) {
      const started = performance.now()
      await client.infer(request)
      latencies.push(performance.now() - started)
      const after = await engineNs(client)
      engines.push((after - before) / 1e6)
      before = after
    }
    const ratios = latencies.map((latency, i) => latency / (engines[i] ?? Number.NaN))
    console.log(`\nensemble: ${ENSEMBLE} at ${SIDE} x ${SIDE}, one client, ${REQUESTS} requests`)
    printTable([
      ['', 'p50 ms', 'p90 ms'],
      ['latency at the client', median(latencies).toFixed(2), quantile(latencies, 0.9).toFixed(2)],
      ['engines, sum of the steps', median(engines).toFixed(2), quantile(engines, 0.9).toFixed(2)],
      ['ratio, request by request', median(ratios).toFixed(3), quantile(ratios, 0.9).toFixed(3)],
    ])
  } finally {
    client.close()
    await server.stop()
  }
}

async function engineNs(client: InferenceClient): Promise<number> {
  const counted = await Promise.all(STEPS.map((step) => readStatistics(client, step)))
  return counted.reduce((sum, step) => sum + step.inferNs, 0)
}
