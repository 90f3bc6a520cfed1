import type { RequestContext } from '@tutti/tensor'
import type { PlanStep } from './ensemble-plan.ts'
import type { NamedEntry, TensorEntry } from './ensemble-run.ts'

/*
 * The state that an ensemble run holds.
 */

/** One value of an ensemble tensor, held by one reference until nothing needs it. */
export interface HeldTensor {
  /** Null for an optional input that the request omits and an output that a step withholds. */
  readonly entry: TensorEntry | null
  /** True if the first dimension is the batch. */
  readonly isBatched: boolean
  /** The context that the step that made it gives on; absent for an ensemble input. */
  readonly context: RequestContext | undefined
  /** Consumers that have not ended, and the response that has not been emitted. */
  uses: number
}

/** The values that belong together: those of the request itself, or those that follow from one decoupled response. */
export interface Iteration {
  /** 0 for the request itself, else one more than the decoupled step whose response it follows from. */
  readonly label: number
  /** Its number among all iterations of the request, in the order in which they were opened. */
  readonly number: number
  /** That of the decoupled step's execution; absent for the request itself. */
  readonly parent: Iteration | undefined
  /** By tensor; undefined until it is made. */
  readonly tensors: (HeldTensor | undefined)[]
  /** By step: how many of its tensors are not there yet, and of the steps that it depends on have not ended. */
  readonly pending: number[]
  /** Executions that have not ended, and the response that has not been emitted. */
  open: number
  /** Steps that have ended and that others depend on; kept where a decoupled step runs. */
  ended?: Set<number>
}

/** One execution of a step in one iteration. */
export interface StepExecution {
  readonly step: PlanStep
  readonly iteration: Iteration
  readonly context: RequestContext
  readonly inputs: readonly NamedEntry[]
  /** Responses so far, an empty final one included. */
  responses: number
}
