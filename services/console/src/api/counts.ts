import { z } from 'zod'

/** Counts of a model's work since it was loaded, over all its versions and replicas. Times are sums, in milliseconds. */
export const Counts = z.object({
  requests: z.number(),
  failures: z.number(),
  requestMs: z.number(),
  queueMs: z.number(),
  computeMs: z.number(),
})
export type Counts = Readonly<z.infer<typeof Counts>>
