import { z } from 'zod'

/** What one execution of a request took, in milliseconds; see `StepSpan` of the server. */
export const StepSpan = z.object({
  step: z.string(),
  model: z.string(),
  depth: z.number(),
  startMs: z.number(),
  endMs: z.number(),
  queueMs: z.number(),
  computeMs: z.number(),
})
export type StepSpan = Readonly<z.infer<typeof StepSpan>>
