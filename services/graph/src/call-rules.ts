import { RETRY_CODES } from '@tutti/api'
import { z } from 'zod'

/** Rule for asking a second replica too. */
const StepHedge = z.object({
  /** Time without an answer after which a second replica is asked, in milliseconds. */
  afterMs: z.int().min(1),
  /** Percent of the step's requests that may be hedged. */
  maxPercent: z.int().min(1).max(100),
})
export type StepHedge = Readonly<z.infer<typeof StepHedge>>

/** Rule for further attempts after one that failed. */
const StepRetry = z.object({
  /** Most attempts after the first one. */
  maxRetries: z.int().min(0),
  /** Codes of failures that are tried again, besides those that are without a rule. */
  retryOn: z.array(z.enum(RETRY_CODES)).readonly(),
  /** Longest wait before the second attempt, in milliseconds. It doubles with each attempt. */
  backoffMs: z.int().min(1),
  /** Percent of the step's calls that may be retries. */
  budgetPercent: z.int().min(1).max(100),
})
export type StepRetry = Readonly<z.infer<typeof StepRetry>>

/** The rules for the call of a step. Each is a wrapper of the call; one that is absent changes nothing. */
export const CallRules = z.object({
  /** Longest time until the last response, over all attempts, in milliseconds. */
  timeoutMs: z.int().min(1).exactOptional(),
  /** Absent if only what cannot have run is tried again, three times in all. */
  retry: StepRetry.exactOptional(),
  /** Absent if no second replica is ever asked. */
  hedge: StepHedge.exactOptional(),
  /** Whether the model may execute a request twice; absent for no. */
  mayRunTwice: z.boolean().exactOptional(),
})
export type CallRules = Readonly<z.infer<typeof CallRules>>
