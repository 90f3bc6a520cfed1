import type { RequestContext } from '@tutti/tensor'
import type { PlanStep } from '../plan/ensemble-plan.ts'
import type { NamedEntry, TensorEntry } from './ensemble-run.ts'

/*
 * The state that an ensemble run holds.
 */

/** One value of an ensemble tensor, held by one reference until nothing needs it. */
export interface HeldTensor {
  /** Tensor; null for an optional input that the request omits and for an output that a step withholds. */
  readonly entry: TensorEntry | null
  /** Whether it is absent because a step was skipped. */
  readonly isSkipped: boolean
  /** True if the first dimension is the batch. */
  readonly isBatched: boolean
  /** Context that the step which made the tensor passes on; undefined for an ensemble input. */
  readonly context: RequestContext | undefined
  /** Number of uses that are left: consumers that have not ended, and a response that is not emitted yet. */
  uses: number
}

/** The values that belong together: those of the request itself, or those that follow from one decoupled response. */
export interface Iteration {
  /** Label: 0 for the request itself, else 1 + the index of the decoupled step whose response opened the iteration. */
  readonly label: number
  /** Number of the iteration within the request, in the order in which iterations were opened. */
  readonly number: number
  /** Iteration of the decoupled step's execution; undefined for the request itself. */
  readonly parent: Iteration | undefined
  /** Values by index of the tensor; undefined until they are made. */
  readonly tensors: (HeldTensor | undefined)[]
  /** Number of waits of each step: tensors that are not there yet, and steps in `dependsOn` that have not ended. */
  readonly pending: number[]
  /** Number of executions that have not ended, plus 1 for a response that is not emitted yet. */
  open: number
  /** Indexes of steps that have ended and that others depend on; kept only if a decoupled step runs. */
  ended?: Set<number>
}

/** One execution of a step in one iteration. */
export interface StepExecution {
  readonly step: PlanStep
  readonly iteration: Iteration
  readonly context: RequestContext
  readonly inputs: readonly NamedEntry[]
  /** Number of responses so far, with an empty final one. */
  responses: number
}
