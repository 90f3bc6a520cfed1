import type { ServeError } from '@tutti/errors'
import type { Datatype, Parameters, RequestContext, Shape } from '@tutti/tensor'

/**
 * A tensor of a run: the number that the caller gave it, its datatype and its shape. The run does not read the data. Numbers of the
 * plan's constants are below 0, and never released.
 */
export interface TensorEntry {
  readonly ref: number
  readonly datatype: Datatype
  readonly shape: Shape
}

/** Tensors by name. An optional input that the request omits is not in the table. */
export type TensorTable = ReadonlyMap<string, TensorEntry>

export interface NamedEntry extends TensorEntry {
  readonly name: string
}

/** An event that the caller reports to a run. `execution` is the number of the InvokeStep that the event belongs to. */
export type RunEvent =
  | {
      readonly type: 'StepResponded'
      readonly execution: number
      readonly index: number
      readonly final: boolean
      /** Tensors by the name of the model's output. From now on the run owns them. */
      readonly outputs: TensorTable
      readonly parameters: Parameters
      /** Outputs of a part that are absent although no step was skipped for them. */
      readonly withheld?: readonly string[]
    }
  | {
      readonly type: 'StepFailed'
      readonly execution: number
      /** Error of the last attempt. The run does not learn of earlier attempts. */
      readonly error: ServeError
      /** True if the execution still runs, because only a response of it was refused. It is cancelled with the run. */
      readonly isRunning?: boolean
    }
  /** The condition of the step did not hold: it did not run. */
  | { readonly type: 'StepSkipped'; readonly execution: number }
  | { readonly type: 'Cancelled'; readonly error: ServeError }

export type RunAction =
  | {
      readonly type: 'InvokeStep'
      readonly step: number
      /** Number of the execution, from 1 in each run, over all steps and iterations. */
      readonly execution: number
      readonly context: RequestContext
      /** Inputs of the model, with shapes already converted (triton-semantics 1.6). Tensors without a value are left out. */
      readonly inputs: readonly NamedEntry[]
      readonly requestedOutputs: readonly string[]
      /** Tensors that the step's condition reads, by the names that they have there. One that is absent is left out. */
      readonly controls: readonly NamedEntry[]
      /** Inputs of a part that are left out because steps were skipped. */
      readonly skipped?: readonly string[]
    }
  /** Tells that a step does not run, because an input that it needs is absent. Nothing is to be done. */
  | { readonly type: 'SkipStep'; readonly step: number; readonly absentInput: string }
  /** Cancels all executions that have not ended. */
  | { readonly type: 'CancelSteps' }
  /** Gives a tensor back to the caller, because the run no longer needs it. Comes once for each tensor. */
  | { readonly type: 'ReleaseTensor'; readonly ref: number }
  | {
      readonly type: 'Emit'
      readonly index: number
      readonly final: boolean
      /** Outputs of the ensemble. The run releases them by later actions. */
      readonly outputs: readonly NamedEntry[]
      readonly parameters: Parameters
      /** Outputs that are absent although no step was skipped for them: models withheld them. */
      readonly withheld: readonly string[]
    }
  | { readonly type: 'Fail'; readonly error: ServeError }

/**
 * The execution of one ensemble request. Pure: it takes events and returns actions, without a clock or I/O.
 *
 * A run ends with exactly one Emit with `final`, or one Fail. With it, the run releases every tensor that it was given. Later
 * events have no effect, but tensors of late responses are released at once. CancelSteps comes before ReleaseTensor for the
 * tensors that steps read.
 */
export interface EnsembleRun {
  /**
   * Starts the run; may be called only once.
   *
   * @param inputs - of a request that was checked against the plan's config.
   * @param skipped - for the plan of a part: inputs that are absent because steps of the whole were skipped.
   */
  start(inputs: TensorTable, skipped?: readonly string[]): readonly RunAction[]
  on(event: RunEvent): readonly RunAction[]
  /**
   * Tells whether a decoupled step has given many responses that the steps after it have not finished. Then it should wait
   * before its next response.
   */
  isAhead(step: number): boolean
}
