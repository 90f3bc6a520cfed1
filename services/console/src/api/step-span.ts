import { z } from 'zod'

/** Far more than servers allow; a text has an indent for each. */
const MOST_DEPTH = 1000

const Count = z.int().min(0).exactOptional()

/** How often things were done around one execution. */
export const SpanCounts = z.object({
  retried: Count,
  retryRefused: Count,
  hedged: Count,
  hedgeWon: Count,
  items: Count,
  itemCalls: Count,
  failedItems: Count,
  iterations: Count,
})

/** One execution of a request, with the times that it took, in milliseconds; see `StepSpan` of the server. */
export const StepSpan = z.object({
  step: z.string(),
  model: z.string(),
  depth: z.int().min(0).max(MOST_DEPTH),
  waitsFor: z.array(z.string()).readonly(),
  startMs: z.number(),
  endMs: z.number(),
  queueMs: z.number(),
  computeMs: z.number(),
  reason: z.string(),
  passed: z.enum(['skipped', 'defaulted']).exactOptional(),
  why: z.string().exactOptional(),
  isFallback: z.boolean().exactOptional(),
  within: z.string().exactOptional(),
  itemReason: z.string().exactOptional(),
  counts: SpanCounts.exactOptional(),
})
export type StepSpan = Readonly<z.infer<typeof StepSpan>>

/** The recorded steps of a request, and the number of steps that are left out. */
export const RecordedSteps = z.object({
  spans: z.array(StepSpan).readonly(),
  leftOut: z.int().min(0),
})
export type RecordedSteps = Readonly<z.infer<typeof RecordedSteps>>

const ToldSteps = RecordedSteps.extend({
  /** The failure of the request. */
  error: z.object({ reason: z.string(), message: z.string() }).exactOptional(),
})
export type ToldSteps = Readonly<z.infer<typeof ToldSteps>>

/**
 * Reads the recorded steps of an answer.
 *
 * @param json - its parameter STEPS_PARAMETER.
 * @throws Error if another version wrote it.
 */
export function parseSteps(json: string): ToldSteps {
  return ToldSteps.parse(JSON.parse(json))
}
