import type { InferenceClient } from '@tutti/protocol'

/** What the server counted for one model so far. Times in nanoseconds. */
export interface Counted {
  readonly requests: number
  readonly inferNs: number
}

/** Reads the statistics of a model that has one version. */
export async function readStatistics(client: InferenceClient, name: string): Promise<Counted> {
  return await new Promise((resolve, reject) => {
    client.objects.ModelStatistics({ name }, (error, response) => {
      const stats = response?.model_stats[0]?.inference_stats
      if (error !== null || stats?.success == null || stats.compute_infer == null) {
        reject(error ?? new Error(`no statistics of ${name}`))
      } else {
        resolve({
          requests: Number(stats.success.count),
          inferNs: Number(stats.compute_infer.ns),
        })
      }
    })
  })
}
