import type { InferenceClient } from '@tutti/protocol/client'

/** The statistics that a server gives of one model since it started. */
export interface ModelReading {
  /** Requests that were answered well. */
  readonly successes: number
  /** Time in the engine's own run, all requests together. */
  readonly computeInferNs: number
}

/** Reads the statistics of one model. */
export function readStatistics(client: InferenceClient, name: string): Promise<ModelReading> {
  return new Promise((resolve, reject) => {
    client.objects.ModelStatistics({ name }, (error, response) => {
      const statistics = response?.model_stats[0]?.inference_stats
      const success = statistics?.success
      const infer = statistics?.compute_infer
      if (error !== null || success == null || infer == null) {
        reject(error ?? new Error(`model ${name} has no statistics`))
      } else {
        resolve({ successes: Number(success.count), computeInferNs: Number(infer.ns) })
      }
    })
  })
}
