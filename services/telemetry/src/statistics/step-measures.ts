import type { StepTimes } from '@tutti/tensor'

/** Names one step of one ensemble in the metrics; a request to the model itself has neither ensemble nor step. */
export interface StepLabels {
  readonly ensemble: string
  readonly step: string
  readonly model: string
}

/** Times of one call of a step, in nanoseconds. */
export interface StepCallTimes {
  /** The transfer of both ways. */
  readonly transferNs: number
  readonly queueNs: number
  readonly computeNs: number
}

/**
 * Counts one call of a step.
 *
 * @param elapsedNs - of the whole call: what it took beyond the step's own queue and compute is the transfer.
 * @param traceId - of a sampled request.
 */
export type ObserveStep = (
  labels: StepLabels,
  times: StepTimes,
  elapsedNs: number,
  traceId?: string,
) => StepCallTimes

/** 0.1 ms to 30 s: a step in the same process takes less than a millisecond, a heavy model seconds. */
export const BUCKETS_S = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
  30,
] as const
