import type { DataType, ModelConfig } from '@tutti/model-config'
import type { Parameters, Shape, TensorValue } from '@tutti/tensor'
import type { CallRules } from '../call-rules.ts'
import type { StepCondition } from '../conditions.ts'
import type { ForEach, Graph, Loop } from '../graph.ts'

/** A model that an ensemble composes, as far as planning needs to know it. */
export interface ComposingModel {
  /** Completed config of the latest READY version; absent if there is none. */
  readonly config?: ModelConfig
  /** Completed configurations by version: those of versions that steps name, if they differ from `config`. */
  readonly configs?: ReadonlyMap<number, ModelConfig>
  readonly readyVersions: readonly number[]
  /** Outputs that an ensemble's response may lack because steps were skipped; absent for none. */
  readonly optionalOutputs?: readonly string[]
  /** Reason why no version is READY, e.g. `version 1 is at UNAVAILABLE state: Internal: ...;`. */
  readonly versionError?: string
  /** Reason why the model's own configuration was refused. */
  readonly configError?: string
}

/** How a step runs for each item. */
export interface PlanForEach extends Omit<ForEach, 'itemDefault'> {
  /** Values, by output, of an item that failed; undefined where the step fails. */
  readonly itemDefault: ReadonlyMap<string, TensorValue> | undefined
}

/** How a step runs again with what it made. */
export interface PlanLoop extends Omit<Loop, 'until'> {
  /** Condition that ends it; undefined for none. */
  readonly until: StepCondition | undefined
}

/** A model's input or output and the ensemble tensor that feeds it or that it makes. */
interface PlanStepOutput {
  readonly name: string
  /** Index into `EnsemblePlan.tensors`. */
  readonly tensor: number
  /** Whether the first dimension is the batch; absent where `isBatched` of the step says it. */
  readonly isBatched?: boolean
}

export interface PlanStepInput {
  readonly name: string
  /** Indexes into `EnsemblePlan.tensors`, the preferred one first: several for `firstOf`. */
  readonly tensors: readonly number[]
  /** Shape that the model declares, without a batch dimension. */
  readonly dims: Shape
  readonly optional: boolean
  /** True if the shape stays as it was made, with or without a batch dimension. */
  readonly isAsMade?: true
}

/** An input of a step's model with the same value in every request. */
export interface PlanStepConstant {
  readonly name: string
  /** Index into `EnsemblePlan.constants`. */
  readonly constant: number
  /** True if the model gets the value once for each row of the batch. */
  readonly isRow: boolean
}

/** A built-in with its inputs and outputs. */
export interface PlanBuiltin {
  /** Text that requests carry (`toStepText`). */
  readonly text: string
  readonly config: ModelConfig
}

export interface PlanStep {
  /** Index of the step in the graph. */
  readonly index: number
  /** Unique name of the step. */
  readonly name: string
  readonly model: string
  /** The built-in that runs in place of the model; undefined for none. */
  readonly builtin: PlanBuiltin | undefined
  /** -1 is the latest READY version. */
  readonly version: number
  /** True if the model batches. */
  readonly isBatched: boolean
  readonly decoupled: boolean
  readonly inputs: readonly PlanStepInput[]
  readonly constants: readonly PlanStepConstant[]
  readonly outputs: readonly PlanStepOutput[]
  /** Tensors that the condition reads, by the names that they have there. */
  readonly controls: readonly PlanStepOutput[]
  /** Condition of the step; undefined for a step that is never skipped by itself. */
  readonly when: StepCondition | undefined
  /** How it runs for each item; undefined for a step that does not. */
  readonly forEach: PlanForEach | undefined
  /** How it runs again with what it made; undefined for a step that does not. */
  readonly loop: PlanLoop | undefined
  /** Parameters of the step's requests beside those of the ensemble's; undefined for none. */
  readonly parameters: Parameters | undefined
  /** Outputs that the step may withhold because steps of its own ensemble were skipped. */
  readonly optionalOutputs: ReadonlySet<string>
  /** Indexes of the tensors that the step reads, each once. */
  readonly reads: readonly number[]
  /** All keys of the output map. The step requests all of them, as in Triton, even if one is not needed. */
  readonly outputNames: readonly string[]
  /** Indexes of the steps that must end before this step begins, if they run. Each comes once, and none of them is decoupled. */
  readonly dependsOn: readonly number[]
  readonly call: CallRules
  /** The steps that it stands for; absent for a step of the graph. */
  readonly part?: PlanPart
  /** Label of all inputs of the step, which tells the iterations in which the step runs. */
  readonly label: number
}

/** Steps of a plan that run as one call. */
export interface PlanPart {
  /** The plan with the steps. */
  readonly whole: EnsemblePlan
  /** Indexes of the steps in it, ascending. */
  readonly steps: readonly number[]
}

/**
 * An ensemble tensor, which has one value in each iteration. Two tensors share a name only if a step writes to the name of an
 * ensemble input. Then steps read the request's tensor, and the ensemble output of that name is the tensor that the step wrote.
 */
export interface PlanTensor {
  readonly name: string
  /** Index of the step that makes the tensor; undefined for an ensemble input. */
  readonly step: number | undefined
  /** Datatype and shape that the ensemble declares, or the model that makes the tensor: with a leading -1 if there is a batch. */
  readonly dataType: DataType
  readonly dims: Shape
  /** True if the first dimension is the batch. */
  readonly isBatched: boolean
  /**
   * Label of the tensor: 0 for one value per request, 1 + the index of a decoupled step for one value per response of that
   * step.
   */
  readonly label: number
}

/** A declared input or output of the ensemble. */
export interface PlanEnsembleTensor {
  readonly name: string
  /** Indexes into `EnsemblePlan.tensors`, the preferred one first: several for an output of `firstOf`. */
  readonly tensors: readonly number[]
  /** Index into `EnsemblePlan.constants` of the value that an input has which a request leaves out; absent for none. */
  readonly default?: number
  /** Shape that the client sees, without a batch dimension. */
  readonly dims: Shape
  /** Shape that the steps see; undefined if it is `dims`. */
  readonly reshape: Shape | undefined
  /** Whether a request, or a response, may lack it. */
  readonly optional: boolean
  /** Whether the first dimension is the batch, where that goes by the tensor; absent if it goes by the ensemble. */
  readonly isBatched?: boolean
}

/** The part of a plan that a set of requested outputs needs. A run reads it at every event. */
export interface RunGraph {
  /** Indexes of the needed steps that read a tensor, ascending; one list per tensor. */
  readonly consumers: readonly (readonly number[])[]
  /** Number of uses of each tensor: the needed steps that read it, and the response. */
  readonly uses: readonly number[]
  /** Number of tensors and steps that each step waits for. */
  readonly pending: readonly number[]
  /** Indexes of the needed steps that wait for a step's end by `dependsOn`; one list per step. */
  readonly dependents: readonly (readonly number[])[]
  readonly outputs: readonly PlanEnsembleTensor[]
  /** Indexes of the tensors that a response takes its outputs from, each once. */
  readonly given: readonly number[]
  /** Label of the requested outputs. Unless it is 0, the ensemble answers once per response of that decoupled step. */
  readonly outputLabel: number
  /** Work of one iteration, by label: the number of steps that it executes, plus 1 if it makes a response. */
  readonly work: readonly number[]
}

/** An ensemble that was checked against its composing models, ready to run. Immutable, and may be shared by all requests. */
export interface EnsemblePlan {
  readonly name: string
  readonly config: ModelConfig
  /** Graph that the plan was made of. */
  readonly graph: Graph
  readonly maxBatchSize: number
  /** Computed: true if any step is decoupled. */
  readonly decoupled: boolean
  readonly steps: readonly PlanStep[]
  readonly tensors: readonly PlanTensor[]
  /** Values of constants and defaults, which runs know by the references -1, -2 and so on. */
  readonly constants: readonly TensorValue[]
  readonly inputs: readonly PlanEnsembleTensor[]
  readonly outputs: readonly PlanEnsembleTensor[]
  /** The part that a request for all outputs executes. */
  readonly whole: RunGraph
}
