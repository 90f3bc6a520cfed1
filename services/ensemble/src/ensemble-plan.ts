import type { StepHedge } from '@tutti/api'
import type { ModelConfig } from '@tutti/model-config'
import type { Shape } from '@tutti/tensor'

/** The facts that planning needs to know of a model that an ensemble composes. */
export interface ComposingModel {
  /** Completed config of the latest READY version; absent if there is none. */
  readonly config?: ModelConfig
  /** Completed configs of versions that steps name, where they differ from that. */
  readonly configs?: ReadonlyMap<number, ModelConfig>
  readonly readyVersions: readonly number[]
  /** Why no version is READY, e.g. `version 1 is at UNAVAILABLE state: Internal: ...;`. */
  readonly versionError?: string
  /** Why the model's own configuration was refused. */
  readonly configError?: string
}

/** A model's input or output and the ensemble tensor that feeds it or that it makes. */
interface PlanStepOutput {
  readonly name: string
  /** Index into `EnsemblePlan.tensors`. */
  readonly tensor: number
}

interface PlanStepInput extends PlanStepOutput {
  /** As the model declares it, without a batch dimension. */
  readonly dims: Shape
  readonly optional: boolean
}

export interface PlanStep {
  /** Position in the config. */
  readonly index: number
  /**
   * Unique in the ensemble: the name that the rules give it, else the model's name, or `<model>#<index>` if the model occurs in
   * several steps.
   */
  readonly name: string
  readonly model: string
  /** -1 is the latest READY version. */
  readonly version: number
  /** True if the model batches. */
  readonly isBatched: boolean
  readonly decoupled: boolean
  readonly inputs: readonly PlanStepInput[]
  readonly outputs: readonly PlanStepOutput[]
  /** Each tensor that it reads, once. */
  readonly reads: readonly number[]
  /** All keys of the output map: Triton asks for them even if one of them is not needed. */
  readonly outputNames: readonly string[]
  /** Steps that must have ended before it begins, if they run; each once, none of them decoupled. */
  readonly dependsOn: readonly number[]
  /** When a second replica is asked too; undefined for never. */
  readonly hedge: StepHedge | undefined
  /** The label that all its inputs carry: in which iterations it runs. */
  readonly label: number
}

/**
 * A value that exists once per iteration. Two tensors have the same name only where a step writes onto the name of an
 * ensemble input: steps read the request's tensor, the ensemble output of that name is the written one.
 */
export interface PlanTensor {
  readonly name: string
  /** The index of the step that makes it; undefined for an ensemble input. */
  readonly step: number | undefined
  /** 0 if there is one value per request; 1 + the index of the decoupled step whose responses count it otherwise. */
  readonly label: number
}

/** A declared input or output of the ensemble. */
export interface PlanEnsembleTensor {
  readonly name: string
  /** Index into `EnsemblePlan.tensors`. */
  readonly tensor: number
  /** The shape that the client sees, without a batch dimension. */
  readonly dims: Shape
  /** The shape that the steps see, if that differs. */
  readonly reshape: Shape | undefined
  readonly optional: boolean
}

/** The part of a plan that one set of requested outputs needs, as the run looks it up on every event. */
export interface RunGraph {
  /** By tensor: needed steps that read it, ascending. */
  readonly consumers: readonly (readonly number[])[]
  /** By tensor: references to it, which are its needed consumers and the response. */
  readonly uses: readonly number[]
  /** By step: how many tensors and steps it waits for. */
  readonly pending: readonly number[]
  /** By step: needed steps that depend on its end beside what they read. */
  readonly dependents: readonly (readonly number[])[]
  readonly outputs: readonly PlanEnsembleTensor[]
  /** The label of the requested outputs; unless 0, the ensemble answers once per response of that decoupled step. */
  readonly outputLabel: number
  /** By label: what one iteration executes, and the response that it makes. */
  readonly work: readonly number[]
}

/** An ensemble that was checked against its composing models, ready to run. Immutable, and may be shared by all requests. */
export interface EnsemblePlan {
  readonly name: string
  readonly config: ModelConfig
  readonly maxBatchSize: number
  /** Computed: true if any step is decoupled. */
  readonly decoupled: boolean
  /** The bounds on the requests in flight to one step, over all requests of the ensemble. */
  readonly stepSlots: {
    /** `max_inflight_requests`; 0 means no bound. */
    readonly maxInflightRequests: number
  }
  /** The longest time for a request; absent for none. */
  readonly timeoutMs: number | undefined
  /** Requests at the same time, of which further ones are refused; absent for no bound. */
  readonly maxInFlightRequests: number | undefined
  readonly steps: readonly PlanStep[]
  readonly tensors: readonly PlanTensor[]
  readonly inputs: readonly PlanEnsembleTensor[]
  readonly outputs: readonly PlanEnsembleTensor[]
  /** The graph that a request for all outputs executes. */
  readonly graph: RunGraph
}
