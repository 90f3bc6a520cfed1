import { z } from 'zod'

/** Rule for asking a second replica too. */
const StepHedge = z.object({
  /** Index of the step in the config. */
  step: z.int().min(0),
  /** Time without an answer after which a second replica is asked, in milliseconds. */
  afterMs: z.int().min(1),
  /** Percent of the step's requests that may be hedged. */
  maxPercent: z.int().min(1).max(100),
})
export type StepHedge = Readonly<z.infer<typeof StepHedge>>

/** The rules of an Ensemble beyond its ModelConfig: config.pbtxt has no words for them. */
export const EnsembleRules = z.object({
  /** Unique names of the steps, in the order of the config. Errors, details and metrics use these names. */
  stepNames: z.array(z.string().min(1)).readonly(),
  /**
   * Indexes of the steps that must end before a step begins, even if it reads none of their outputs; one list per step. This
   * orders steps but makes none run: a step that no requested output needs is not waited for.
   */
  dependsOn: z.array(z.array(z.int().min(0)).readonly()).readonly(),
  /** Hedges of the steps whose requests may go to two replicas each; absent where there are none. */
  hedges: z.array(StepHedge).readonly().exactOptional(),
  /** The longest time for a request, in milliseconds; absent for none. A client's deadline may be sooner. */
  timeoutMs: z.int().min(1).exactOptional(),
  /** Requests that a router executes at the same time; more are refused at once. Absent for no bound. */
  maxInFlightRequests: z.int().min(1).exactOptional(),
})
export type EnsembleRules = Readonly<z.infer<typeof EnsembleRules>>
