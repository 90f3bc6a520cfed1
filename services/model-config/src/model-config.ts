import type { ConfigDatatype } from '@tutti/tensor'

/*
 * Triton's ModelConfig (model_config.proto), with the proto's field names. Scalars, lists and maps are always present
 * (proto3 defaults); messages are absent unless they were given. 64-bit integers are numbers within +-(2^53 - 1): the
 * parser refuses what lies outside.
 */

export type DataType = 'TYPE_INVALID' | ConfigDatatype
export type InstanceKind = 'KIND_AUTO' | 'KIND_GPU' | 'KIND_CPU' | 'KIND_MODEL'
export type TensorFormat = 'FORMAT_NONE' | 'FORMAT_NHWC' | 'FORMAT_NCHW'

export interface TensorReshape {
  readonly shape: readonly number[]
}

export interface ModelInput {
  readonly name: string
  readonly data_type: DataType
  readonly format: TensorFormat
  readonly dims: readonly number[]
  readonly reshape?: TensorReshape
  readonly is_shape_tensor: boolean
  readonly allow_ragged_batch: boolean
  readonly optional: boolean
  readonly is_non_linear_format_io: boolean
}

export interface ModelOutput {
  readonly name: string
  readonly data_type: DataType
  readonly dims: readonly number[]
  readonly reshape?: TensorReshape
  readonly label_filename: string
  readonly is_shape_tensor: boolean
  readonly is_non_linear_format_io: boolean
}

export interface InstanceGroup {
  readonly name: string
  readonly kind: InstanceKind
  readonly count: number
  readonly rate_limiter?: RateLimiter
  readonly gpus: readonly number[]
  readonly secondary_devices: readonly SecondaryDevice[]
  readonly profile: readonly string[]
  readonly passive: boolean
  readonly host_policy: string
}

export interface RateLimiter {
  readonly resources: readonly RateLimiterResource[]
  readonly priority: number
}

export interface RateLimiterResource {
  readonly name: string
  readonly global: boolean
  readonly count: number
}

export interface SecondaryDevice {
  readonly kind: 'KIND_NVDLA'
  readonly device_id: number
}

export interface VersionPolicy {
  /** Exactly one of the three. */
  readonly latest?: { readonly num_versions: number }
  readonly all?: Readonly<Record<string, never>>
  readonly specific?: { readonly versions: readonly number[] }
}

export interface QueuePolicy {
  readonly timeout_action: 'REJECT' | 'DELAY'
  readonly default_timeout_microseconds: number
  readonly allow_timeout_override: boolean
  readonly max_queue_size: number
}

export interface DynamicBatching {
  readonly preferred_batch_size: readonly number[]
  readonly max_queue_delay_microseconds: number
  readonly preserve_ordering: boolean
  readonly priority_levels: number
  readonly default_priority_level: number
  readonly default_queue_policy?: QueuePolicy
  /** Key: the priority level in decimal. */
  readonly priority_queue_policy: Readonly<Record<string, QueuePolicy>>
}

export interface EnsembleStep {
  readonly model_name: string
  /** -1 is the latest ready version; the proto's default is 0. */
  readonly model_version: number
  /** Key: the model's input; value: the ensemble's tensor. */
  readonly input_map: Readonly<Record<string, string>>
  /** Key: the model's output; value: the ensemble's tensor. */
  readonly output_map: Readonly<Record<string, string>>
  readonly model_namespace: string
}

export interface EnsembleScheduling {
  readonly step: readonly EnsembleStep[]
  readonly max_inflight_requests: number
}

export interface WarmupInput {
  readonly data_type: DataType
  readonly dims: readonly number[]
  /** Exactly one of the three. */
  readonly zero_data?: boolean
  readonly random_data?: boolean
  readonly input_data_file?: string
}

export interface ModelWarmup {
  readonly name: string
  readonly batch_size: number
  readonly inputs: Readonly<Record<string, WarmupInput>>
  readonly count: number
}

export interface ModelParameter {
  readonly string_value: string
}

export interface ModelOptimization {
  readonly graph?: { readonly level: number }
  readonly priority: 'PRIORITY_DEFAULT' | 'PRIORITY_MAX' | 'PRIORITY_MIN'
  readonly cuda?: CudaOptimization
  readonly execution_accelerators?: {
    readonly gpu_execution_accelerator: readonly Accelerator[]
    readonly cpu_execution_accelerator: readonly Accelerator[]
  }
  readonly input_pinned_memory?: { readonly enable: boolean }
  readonly output_pinned_memory?: { readonly enable: boolean }
  readonly gather_kernel_buffer_threshold: number
  readonly eager_batching: boolean
}

export interface Accelerator {
  readonly name: string
  readonly parameters: Readonly<Record<string, string>>
}

export interface CudaGraphShape {
  readonly dim: readonly number[]
}

export interface CudaOptimization {
  readonly graphs: boolean
  readonly busy_wait_events: boolean
  readonly graph_spec: readonly {
    readonly batch_size: number
    readonly input: Readonly<Record<string, CudaGraphShape>>
    readonly graph_lower_bound?: {
      readonly batch_size: number
      readonly input: Readonly<Record<string, CudaGraphShape>>
    }
  }[]
  readonly output_copy_stream: boolean
}

export interface SequenceControl {
  readonly kind:
    | 'CONTROL_SEQUENCE_START'
    | 'CONTROL_SEQUENCE_READY'
    | 'CONTROL_SEQUENCE_END'
    | 'CONTROL_SEQUENCE_CORRID'
  readonly int32_false_true: readonly number[]
  readonly fp32_false_true: readonly number[]
  readonly bool_false_true: readonly boolean[]
  readonly data_type: DataType
}

export interface SequenceState {
  readonly input_name: string
  readonly output_name: string
  readonly data_type: DataType
  readonly dims: readonly number[]
  readonly initial_state: readonly {
    readonly data_type: DataType
    readonly dims: readonly number[]
    /** Exactly one of `zero_data` and `data_file`. */
    readonly zero_data?: boolean
    readonly data_file?: string
    readonly name: string
  }[]
  readonly use_same_buffer_for_input_output: boolean
  readonly use_growable_memory: boolean
}

export interface SequenceBatching {
  /** Exactly one of `direct` and `oldest`, or neither. */
  readonly direct?: {
    readonly max_queue_delay_microseconds: number
    readonly minimum_slot_utilization: number
  }
  readonly oldest?: {
    readonly max_candidate_sequences: number
    readonly preferred_batch_size: readonly number[]
    readonly max_queue_delay_microseconds: number
    readonly preserve_ordering: boolean
  }
  readonly max_sequence_idle_microseconds: number
  readonly control_input: readonly {
    readonly name: string
    readonly control: readonly SequenceControl[]
  }[]
  readonly state: readonly SequenceState[]
  readonly iterative_sequence: boolean
}

export interface BatchInput {
  readonly kind:
    | 'BATCH_ELEMENT_COUNT'
    | 'BATCH_ACCUMULATED_ELEMENT_COUNT'
    | 'BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO'
    | 'BATCH_MAX_ELEMENT_COUNT_AS_SHAPE'
    | 'BATCH_ITEM_SHAPE'
    | 'BATCH_ITEM_SHAPE_FLATTEN'
  readonly target_name: readonly string[]
  readonly data_type: DataType
  readonly source_input: readonly string[]
}

export interface BatchOutput {
  readonly target_name: readonly string[]
  readonly kind: 'BATCH_SCATTER_WITH_INPUT_SHAPE'
  readonly source_input: readonly string[]
}

export interface ModelConfig {
  readonly name: string
  readonly platform: string
  readonly backend: string
  readonly runtime: string
  readonly version_policy?: VersionPolicy
  readonly max_batch_size: number
  readonly input: readonly ModelInput[]
  readonly output: readonly ModelOutput[]
  readonly batch_input: readonly BatchInput[]
  readonly batch_output: readonly BatchOutput[]
  readonly optimization?: ModelOptimization
  /** At most one of the three schedulers. */
  readonly dynamic_batching?: DynamicBatching
  readonly sequence_batching?: SequenceBatching
  readonly ensemble_scheduling?: EnsembleScheduling
  readonly instance_group: readonly InstanceGroup[]
  readonly default_model_filename: string
  readonly cc_model_filenames: Readonly<Record<string, string>>
  readonly metric_tags: Readonly<Record<string, string>>
  readonly parameters: Readonly<Record<string, ModelParameter>>
  readonly model_warmup: readonly ModelWarmup[]
  readonly model_operations?: { readonly op_library_filename: readonly string[] }
  readonly model_transaction_policy?: { readonly decoupled: boolean }
  readonly model_repository_agents?: {
    readonly agents: readonly {
      readonly name: string
      readonly parameters: Readonly<Record<string, string>>
    }[]
  }
  readonly response_cache?: { readonly enable: boolean }
  readonly model_metrics?: {
    readonly metric_control: readonly {
      readonly metric_identifier?: { readonly family: string }
      readonly histogram_options?: { readonly buckets: readonly number[] }
    }[]
  }
}
