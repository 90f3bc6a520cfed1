import { DATATYPES } from '@tutti/tensor'
import { PART_MESSAGES } from './descriptor-messages.ts'
import {
  choice,
  type Descriptor,
  type EnumDescriptor,
  type FieldRow,
  list,
  message,
  messageMap,
  messages,
  scalar,
  textMap,
  toMessageDescriptor,
} from './descriptor-types.ts'

const SCHEDULER = { oneof: 'scheduling_choice' }
const STRATEGY = { oneof: 'strategy_choice' }

const CONFIG_MESSAGES: Readonly<Record<string, Readonly<Record<string, FieldRow>>>> = {
  ModelQueuePolicy: {
    timeout_action: choice(1, 'ModelQueuePolicy.TimeoutAction'),
    default_timeout_microseconds: scalar(2, 'uint64'),
    allow_timeout_override: scalar(3, 'bool'),
    max_queue_size: scalar(4, 'uint32'),
  },
  ModelDynamicBatching: {
    preferred_batch_size: list(1, 'int32'),
    max_queue_delay_microseconds: scalar(2, 'uint64'),
    preserve_ordering: scalar(3, 'bool'),
    priority_levels: scalar(4, 'uint64'),
    default_priority_level: scalar(5, 'uint64'),
    default_queue_policy: message(6, 'ModelQueuePolicy'),
    priority_queue_policy: messageMap(7, 'ModelQueuePolicy', 'uint64'),
  },
  ModelSequenceBatching: {
    direct: message(3, 'ModelSequenceBatching.StrategyDirect', STRATEGY),
    oldest: message(4, 'ModelSequenceBatching.StrategyOldest', STRATEGY),
    max_sequence_idle_microseconds: scalar(1, 'uint64'),
    control_input: messages(2, 'ModelSequenceBatching.ControlInput'),
    state: messages(5, 'ModelSequenceBatching.State'),
    iterative_sequence: scalar(6, 'bool'),
  },
  'ModelSequenceBatching.Control': {
    kind: choice(1, 'ModelSequenceBatching.Control.Kind'),
    int32_false_true: list(2, 'int32'),
    fp32_false_true: list(3, 'float'),
    bool_false_true: list(5, 'bool'),
    data_type: choice(4, 'DataType'),
  },
  'ModelSequenceBatching.ControlInput': {
    name: scalar(1, 'string'),
    control: messages(2, 'ModelSequenceBatching.Control'),
  },
  'ModelSequenceBatching.InitialState': {
    data_type: choice(1, 'DataType'),
    dims: list(2, 'int64'),
    zero_data: scalar(3, 'bool', { oneof: 'state_data' }),
    data_file: scalar(4, 'string', { oneof: 'state_data' }),
    name: scalar(5, 'string'),
  },
  'ModelSequenceBatching.State': {
    input_name: scalar(1, 'string'),
    output_name: scalar(2, 'string'),
    data_type: choice(3, 'DataType'),
    dims: list(4, 'int64'),
    initial_state: messages(5, 'ModelSequenceBatching.InitialState'),
    use_same_buffer_for_input_output: scalar(6, 'bool'),
    use_growable_memory: scalar(7, 'bool'),
  },
  'ModelSequenceBatching.StrategyDirect': {
    max_queue_delay_microseconds: scalar(1, 'uint64'),
    minimum_slot_utilization: scalar(2, 'float'),
  },
  'ModelSequenceBatching.StrategyOldest': {
    max_candidate_sequences: scalar(1, 'int32'),
    preferred_batch_size: list(2, 'int32'),
    max_queue_delay_microseconds: scalar(3, 'uint64'),
    preserve_ordering: scalar(4, 'bool'),
  },
  ModelEnsembling: {
    step: messages(1, 'ModelEnsembling.Step'),
    max_inflight_requests: scalar(2, 'uint32'),
  },
  'ModelEnsembling.Step': {
    model_name: scalar(1, 'string'),
    model_version: scalar(2, 'int64'),
    input_map: textMap(3),
    output_map: textMap(4),
    model_namespace: scalar(5, 'string'),
  },
  ModelConfig: {
    name: scalar(1, 'string'),
    platform: scalar(2, 'string'),
    backend: scalar(17, 'string'),
    runtime: scalar(25, 'string'),
    version_policy: message(3, 'ModelVersionPolicy'),
    max_batch_size: scalar(4, 'int32'),
    input: messages(5, 'ModelInput'),
    output: messages(6, 'ModelOutput'),
    batch_input: messages(20, 'BatchInput'),
    batch_output: messages(21, 'BatchOutput'),
    optimization: message(12, 'ModelOptimizationPolicy'),
    dynamic_batching: message(11, 'ModelDynamicBatching', SCHEDULER),
    sequence_batching: message(13, 'ModelSequenceBatching', SCHEDULER),
    ensemble_scheduling: message(15, 'ModelEnsembling', SCHEDULER),
    instance_group: messages(7, 'ModelInstanceGroup'),
    default_model_filename: scalar(8, 'string'),
    cc_model_filenames: textMap(9),
    metric_tags: textMap(10),
    parameters: messageMap(14, 'ModelParameter'),
    model_warmup: messages(16, 'ModelWarmup'),
    model_operations: message(18, 'ModelOperations'),
    model_transaction_policy: message(19, 'ModelTransactionPolicy'),
    model_repository_agents: message(23, 'ModelRepositoryAgents'),
    response_cache: message(24, 'ModelResponseCache'),
    model_metrics: message(26, 'ModelMetrics'),
  },
}

const ENUMS: Readonly<Record<string, EnumDescriptor>> = {
  DataType: {
    TYPE_INVALID: 0,
    ...Object.fromEntries(Object.values(DATATYPES).map((row) => [row.config, row.number])),
  },
  'ModelInstanceGroup.Kind': { KIND_AUTO: 0, KIND_GPU: 1, KIND_CPU: 2, KIND_MODEL: 3 },
  'ModelInstanceGroup.SecondaryDevice.SecondaryDeviceKind': { KIND_NVDLA: 0 },
  'ModelInput.Format': { FORMAT_NONE: 0, FORMAT_NHWC: 1, FORMAT_NCHW: 2 },
  'BatchInput.Kind': {
    BATCH_ELEMENT_COUNT: 0,
    BATCH_ACCUMULATED_ELEMENT_COUNT: 1,
    BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO: 2,
    BATCH_MAX_ELEMENT_COUNT_AS_SHAPE: 3,
    BATCH_ITEM_SHAPE: 4,
    BATCH_ITEM_SHAPE_FLATTEN: 5,
  },
  'BatchOutput.Kind': { BATCH_SCATTER_WITH_INPUT_SHAPE: 0 },
  'ModelOptimizationPolicy.ModelPriority': {
    PRIORITY_DEFAULT: 0,
    PRIORITY_MAX: 1,
    PRIORITY_MIN: 2,
  },
  'ModelQueuePolicy.TimeoutAction': { REJECT: 0, DELAY: 1 },
  'ModelSequenceBatching.Control.Kind': {
    CONTROL_SEQUENCE_START: 0,
    CONTROL_SEQUENCE_READY: 1,
    CONTROL_SEQUENCE_END: 2,
    CONTROL_SEQUENCE_CORRID: 3,
  },
}

/**
 * Every message and enum that a ModelConfig can hold, as model_config.proto declares them: parser, printer and JSON
 * conversion are driven by it.
 */
export const DESCRIPTOR: Descriptor = {
  messages: new Map(
    Object.entries({ ...PART_MESSAGES, ...CONFIG_MESSAGES }).map(([name, rows]) => [
      name,
      toMessageDescriptor(name, rows),
    ]),
  ),
  enums: new Map(Object.entries(ENUMS)),
}
