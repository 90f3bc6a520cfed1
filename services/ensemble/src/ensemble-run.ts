import type { ServeError } from '@tutti/errors'
import type { Datatype, Parameters, RequestContext, Shape } from '@tutti/tensor'

/** A tensor that the run knows about but does not read: an id into the caller's TensorMemory, and its description. */
export interface TensorEntry {
  readonly ref: number
  readonly datatype: Datatype
  readonly shape: Shape
}

/** Inputs of the ensemble by name; a declared optional input that the request omits is not in it. */
export type TensorTable = ReadonlyMap<string, TensorEntry>

export interface StepInput extends TensorEntry {
  readonly name: string
}

/** `attempt` repeats the number of the InvokeStep that the event belongs to. */
export type RunEvent =
  | {
      readonly type: 'StepResponded'
      readonly step: number
      readonly attempt: number
      readonly index: number
      readonly final: boolean
      /** By the model's output name. The run owns these references from now on. */
      readonly outputs: TensorTable
      readonly parameters: Parameters
    }
  | {
      readonly type: 'StepFailed'
      readonly step: number
      readonly attempt: number
      readonly error: ServeError
      /** 'no' if the step cannot have run, so that it may be tried again. */
      readonly executed: 'no' | 'maybe'
    }
  | { readonly type: 'TimerFired'; readonly timer: number }
  | { readonly type: 'Cancelled'; readonly error: ServeError }

export type RunAction =
  | {
      readonly type: 'InvokeStep'
      readonly step: number
      /**
       * Counts the invocations of the step in this run from 1: further attempts, and the iterations after a decoupled
       * step. So step and attempt name one invocation.
       */
      readonly attempt: number
      readonly context: RequestContext
      /** Shapes are converted already (triton-semantics 1.6). Null tensors are left out. */
      readonly inputs: readonly StepInput[]
      readonly requestedOutputs: readonly string[]
    }
  | { readonly type: 'CancelStep'; readonly step: number; readonly attempt: number }
  /** Another reference is needed: one tensor goes to several consumers. */
  | { readonly type: 'RetainTensor'; readonly ref: number }
  /** The run needs this tensor no more. */
  | { readonly type: 'ReleaseTensor'; readonly ref: number }
  | { readonly type: 'SetTimer'; readonly timer: number; readonly delayMs: number }
  | { readonly type: 'ClearTimer'; readonly timer: number }
  | {
      readonly type: 'Emit'
      readonly index: number
      readonly final: boolean
      /** Ensemble outputs by name; their references pass to the caller, which releases them once encoded. */
      readonly outputs: TensorTable
      readonly parameters: Parameters
    }
  | { readonly type: 'Fail'; readonly error: ServeError }

/**
 * The execution of one ensemble request. Pure: events in, actions out; no clock, no I/O.
 * Ends with exactly one Emit with `final` or one Fail, after which every reference that it was given is released or emitted
 * (late responses of cancelled steps are released at once) and it takes events without effect. CancelStep comes before the
 * ReleaseTensor of what the step reads.
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
