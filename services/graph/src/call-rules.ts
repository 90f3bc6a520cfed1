import { RETRY_CODES } from '@tutti/api'
import { z } from 'zod'
import { Constant } from './constant.ts'

/** Rule for asking a second replica too. */
const StepHedge = z.object({
  /** Time without an answer after which a second replica is asked, in milliseconds. */
  afterMs: z.int().min(1),
  /** Percent of the step's requests that may be hedged. */
  maxPercent: z.int().min(1).max(100),
})
export type StepHedge = Readonly<z.infer<typeof StepHedge>>

/** The parts of a rule for retries that it leaves out. */
export const RETRY_DEFAULTS = {
  retryOn: ['UNAVAILABLE'],
  backoffMs: 10,
  budgetPercent: 20,
} as const

/** Rule for further attempts after one that failed. */
const StepRetry = z.object({
  /** Most attempts after the first one. */
  maxRetries: z.int().min(0),
  /** Codes of failures that are tried again, besides those that are without a rule. */
  retryOn: z.array(z.enum(RETRY_CODES)).readonly(),
  /** Longest wait before the second attempt, in milliseconds. It doubles with each attempt. */
  backoffMs: z.int().min(1),
  /** Percent of the step's calls that may be retries; absent for no bound. */
  budgetPercent: z.int().min(1).max(100).exactOptional(),
})
export type StepRetry = Readonly<z.infer<typeof StepRetry>>

/** The answer to the last failure of a step. */
const OnError = z.discriminatedUnion('kind', [
  /** Another model gets the inputs of the step and makes its outputs. */
  z.object({
    kind: z.literal('fallback'),
    /** Served name of a Model or an Ensemble. */
    model: z.string(),
    /** Version of the model; -1 is the latest one that is READY. */
    version: z.int().min(-1),
    /** Longest time until its last response, in milliseconds. */
    timeoutMs: z.int().min(1).exactOptional(),
  }),
  /** Values stand in for the outputs of the step, each of which comes once. */
  z.object({
    kind: z.literal('default'),
    outputs: z.array(z.object({ name: z.string(), value: Constant }).readonly()).readonly(),
  }),
])
export type OnError = Readonly<z.infer<typeof OnError>>

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
  /** Absent if a failure is the step's. */
  onError: OnError.exactOptional(),
})
export type CallRules = Readonly<z.infer<typeof CallRules>>

/** A model, or an ensemble, that may be called. */
export interface Callee {
  readonly model: string
  /** -1 is the latest version that is READY. */
  readonly version: number
}

/** Returns the fallback of a call; undefined if it has none. */
export function fallbackOf({ onError }: CallRules): Extract<OnError, Callee> | undefined {
  return onError?.kind === 'fallback' ? onError : undefined
}
