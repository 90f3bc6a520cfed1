import type { ServeError } from '@tutti/errors'
import type { Datatype, Parameters, RequestContext, Shape } from '@tutti/tensor'

/** A tensor that the run knows about but does not read: the number that the caller gave it, and its description. */
export interface TensorEntry {
  readonly ref: number
  readonly datatype: Datatype
  readonly shape: Shape
}

/** Inputs of the ensemble by name; a declared optional input that the request omits is not in it. */
export type TensorTable = ReadonlyMap<string, TensorEntry>

export interface NamedEntry extends TensorEntry {
  readonly name: string
}

/** `execution` repeats the number of the InvokeStep that the event belongs to. */
export type RunEvent =
  | {
      readonly type: 'StepResponded'
      readonly execution: number
      readonly index: number
      readonly final: boolean
      /** By the model's output name. The run owns these references from now on. */
      readonly outputs: TensorTable
      readonly parameters: Parameters
    }
  | {
      readonly type: 'StepFailed'
      readonly execution: number
      /** Error of the last attempt: the run knows of no other. */
      readonly error: ServeError
      /** True if it goes on all the same, because a response of it was refused. It is cancelled with the run. */
      readonly isRunning?: boolean
    }
  | { readonly type: 'Cancelled'; readonly error: ServeError }

export type RunAction =
  | {
      readonly type: 'InvokeStep'
      readonly step: number
      /** Counts from 1 in this run, over all steps and the iterations after a decoupled one. */
      readonly execution: number
      readonly context: RequestContext
      /** Shapes are converted already (triton-semantics 1.6). Null tensors are left out. */
      readonly inputs: readonly NamedEntry[]
      readonly requestedOutputs: readonly string[]
    }
  /** All that have not ended. */
  | { readonly type: 'CancelSteps' }
  /** The run needs this tensor no more. Comes once for each. */
  | { readonly type: 'ReleaseTensor'; readonly ref: number }
  | {
      readonly type: 'Emit'
      readonly index: number
      readonly final: boolean
      /** The ensemble's outputs; the run releases them afterwards. */
      readonly outputs: readonly NamedEntry[]
      readonly parameters: Parameters
    }
  | { readonly type: 'Fail'; readonly error: ServeError }

/**
 * The execution of one ensemble request. Pure: events in, actions out; no clock, no I/O.
 * Ends with exactly one Emit with `final` or one Fail, with which every tensor that it was given is released (late responses of
 * cancelled steps are released at once), and then takes events without effect. CancelSteps comes before the ReleaseTensor of
 * what the steps read.
 */
export interface EnsembleRun {
  /** @param inputs - of a request that was checked against the plan's config. */
  start(inputs: TensorTable): readonly RunAction[]
  on(event: RunEvent): readonly RunAction[]
  /**
   * True while the steps after a decoupled one have many of its responses to finish with: it should wait before it gives
   * another.
   */
  isAhead(step: number): boolean
}
