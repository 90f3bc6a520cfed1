import type { StepCount } from '@tutti/tensor'
import type { ModelCall } from './model-call.ts'
import type { RequestDependencies } from './request-dependencies.ts'

/** A thing that was done around the calls of a step. */
interface StepNote {
  readonly what: StepCount
  /** Default 1. */
  readonly count?: number
  /** Reason of the first error, for items that failed. */
  readonly reason?: string | undefined
}

/** Counts what is done around the calls of a step, and tells those who watch its execution. */
export function noteStep(
  { metrics }: Pick<RequestDependencies, 'metrics'>,
  {
    ensemble,
    step,
    target,
    observed,
  }: Pick<ModelCall, 'ensemble' | 'step' | 'target' | 'observed'>,
  { what, count = 1, reason }: StepNote,
): void {
  // A request to the model itself is none of a step.
  if (step === '') return
  metrics.countStep({ ensemble, step, model: target.entry.name }, what, count)
  observed?.counted(what, count, reason)
}
