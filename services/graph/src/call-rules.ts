import { z } from 'zod'

/** Rule for asking a second replica too. */
const StepHedge = z.object({
  /** Time without an answer after which a second replica is asked, in milliseconds. */
  afterMs: z.int().min(1),
  /** Percent of the step's requests that may be hedged. */
  maxPercent: z.int().min(1).max(100),
})
export type StepHedge = Readonly<z.infer<typeof StepHedge>>

/** The rules for the call of a step. Each is a wrapper of the call; one that is absent changes nothing. */
export const CallRules = z.object({
  /** Longest time until the last response, over all attempts, in milliseconds. */
  timeoutMs: z.int().min(1).exactOptional(),
  /** Absent if no second replica is ever asked. */
  hedge: StepHedge.exactOptional(),
})
export type CallRules = Readonly<z.infer<typeof CallRules>>
