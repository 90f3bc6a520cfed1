import { InferenceClient } from '@tutti/protocol/client'

/**
 * Asks an ensemble twice: the first request warms the caches of the engines, the figures are of the second.
 *
 * @param {{ ensemble: string, steps: readonly string[] }} system
 * @param {{ grpcPort: number, metricsPort: number }} server
 * @param {object} input - of the ensemble: name, datatype, shape, data.
 * @returns {Promise<{ output: Uint8Array, wallMs: number, table: string }>} the bytes of its only output, and where the time went.
 */
export async function askEnsemble({ ensemble, steps }, { grpcPort, metricsPort }, input) {
  const client = new InferenceClient({ address: `127.0.0.1:${grpcPort}` })
  const ask = async () => {
    const { outputs } = await client.infer({ modelName: ensemble, id: 'demo', inputs: [input] })
    return outputs[0].data
  }
  try {
    await ask()
    const before = await stepTimes(ensemble, metricsPort)
    const started = performance.now()
    const output = await ask()
    const wallMs = performance.now() - started
    const after = await stepTimes(ensemble, metricsPort)
    return { output, wallMs, table: toTable(steps, before, after) }
  } finally {
    client.close()
  }
}

/** Seconds that each step spent so far, from the server's own metrics: `step.part` -> seconds. */
async function stepTimes(ensemble, port) {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  const times = new Map()
  for (const line of text.split('\n')) {
    const found = /^tutti_step_(queue|transfer|compute)_seconds_sum\{(.*)\} (\S+)$/.exec(line)
    if (found === null || !found[2].includes(`ensemble="${ensemble}"`)) continue
    const step = /step="([^"]*)"/.exec(found[2])?.[1]
    times.set(`${step}.${found[1]}`, Number(found[3]))
  }
  return times
}

function toTable(steps, before, after) {
  const rows = steps.map((step) => {
    const [queue, transfer, compute] = ['queue', 'transfer', 'compute'].map((part) =>
      ((after.get(`${step}.${part}`) - before.get(`${step}.${part}`)) * 1000).toFixed(2),
    )
    return `${step.padEnd(28)} ${queue.padStart(10)} ${transfer.padStart(13)} ${compute.padStart(12)}`
  })
  return ['step                           queue ms   transfer ms   compute ms', ...rows].join('\n')
}
