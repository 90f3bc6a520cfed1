import type { StepTimes } from '@tutti/tensor'

/** Adds the times of several executions. */
export function addTimes(sum: StepTimes, times: StepTimes | undefined): StepTimes {
  if (times === undefined) return sum
  return {
    queueNs: sum.queueNs + times.queueNs,
    computeInputNs: sum.computeInputNs + times.computeInputNs,
    computeInferNs: sum.computeInferNs + times.computeInferNs,
    computeOutputNs: sum.computeOutputNs + times.computeOutputNs,
    transferNs: sum.transferNs + times.transferNs,
  }
}
