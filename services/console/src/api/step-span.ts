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
  reason: z.string(),
})
export type StepSpan = Readonly<z.infer<typeof StepSpan>>

/** The steps of a request, and how many of them are not told. */
export const RecordedSteps = z.object({
  spans: z.array(StepSpan).readonly(),
  leftOut: z.number(),
})
export type RecordedSteps = Readonly<z.infer<typeof RecordedSteps>>
