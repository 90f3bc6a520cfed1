/*
 * model_config.proto as a table: every message and enum that a ModelConfig can hold, names without the package `inference.`.
 * Parser, printer, JSON and types are made from it.
 */

/**
 * Types of fields by message, in the order of the .proto file, which is also the order of Triton's JSON. A type is `T`,
 * `repeated T` or `map<K,T>`, with ` of ONEOF` for a member of a oneof.
 */
export const MESSAGES = {
  ModelRateLimiter: {
    resources: 'repeated ModelRateLimiter.Resource',
    priority: 'uint32',
  },
  'ModelRateLimiter.Resource': {
    name: 'string',
    global: 'bool',
    count: 'uint32',
  },
  ModelInstanceGroup: {
    name: 'string',
    kind: 'ModelInstanceGroup.Kind',
    count: 'int32',
    rate_limiter: 'ModelRateLimiter',
    gpus: 'repeated int32',
    secondary_devices: 'repeated ModelInstanceGroup.SecondaryDevice',
    profile: 'repeated string',
    passive: 'bool',
    host_policy: 'string',
  },
  'ModelInstanceGroup.SecondaryDevice': {
    kind: 'ModelInstanceGroup.SecondaryDevice.SecondaryDeviceKind',
    device_id: 'int64',
  },
  ModelTensorReshape: {
    shape: 'repeated int64',
  },
  ModelInput: {
    name: 'string',
    data_type: 'DataType',
    format: 'ModelInput.Format',
    dims: 'repeated int64',
    reshape: 'ModelTensorReshape',
    is_shape_tensor: 'bool',
    allow_ragged_batch: 'bool',
    optional: 'bool',
    is_non_linear_format_io: 'bool',
  },
  ModelOutput: {
    name: 'string',
    data_type: 'DataType',
    dims: 'repeated int64',
    reshape: 'ModelTensorReshape',
    label_filename: 'string',
    is_shape_tensor: 'bool',
    is_non_linear_format_io: 'bool',
  },
  BatchInput: {
    kind: 'BatchInput.Kind',
    target_name: 'repeated string',
    data_type: 'DataType',
    source_input: 'repeated string',
  },
  BatchOutput: {
    target_name: 'repeated string',
    kind: 'BatchOutput.Kind',
    source_input: 'repeated string',
  },
  ModelVersionPolicy: {
    latest: 'ModelVersionPolicy.Latest of policy_choice',
    all: 'ModelVersionPolicy.All of policy_choice',
    specific: 'ModelVersionPolicy.Specific of policy_choice',
  },
  'ModelVersionPolicy.Latest': {
    num_versions: 'uint32',
  },
  'ModelVersionPolicy.All': {},
  'ModelVersionPolicy.Specific': {
    versions: 'repeated int64',
  },
  ModelOptimizationPolicy: {
    graph: 'ModelOptimizationPolicy.Graph',
    priority: 'ModelOptimizationPolicy.ModelPriority',
    cuda: 'ModelOptimizationPolicy.Cuda',
    execution_accelerators: 'ModelOptimizationPolicy.ExecutionAccelerators',
    input_pinned_memory: 'ModelOptimizationPolicy.PinnedMemoryBuffer',
    output_pinned_memory: 'ModelOptimizationPolicy.PinnedMemoryBuffer',
    gather_kernel_buffer_threshold: 'uint32',
    eager_batching: 'bool',
  },
  'ModelOptimizationPolicy.Graph': {
    level: 'int32',
  },
  'ModelOptimizationPolicy.Cuda': {
    graphs: 'bool',
    busy_wait_events: 'bool',
    graph_spec: 'repeated ModelOptimizationPolicy.Cuda.GraphSpec',
    output_copy_stream: 'bool',
  },
  'ModelOptimizationPolicy.Cuda.GraphSpec': {
    batch_size: 'int32',
    input: 'map<string,ModelOptimizationPolicy.Cuda.GraphSpec.Shape>',
    graph_lower_bound: 'ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound',
  },
  'ModelOptimizationPolicy.Cuda.GraphSpec.Shape': {
    dim: 'repeated int64',
  },
  'ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound': {
    batch_size: 'int32',
    input: 'map<string,ModelOptimizationPolicy.Cuda.GraphSpec.Shape>',
  },
  'ModelOptimizationPolicy.ExecutionAccelerators': {
    gpu_execution_accelerator: 'repeated ModelOptimizationPolicy.ExecutionAccelerators.Accelerator',
    cpu_execution_accelerator: 'repeated ModelOptimizationPolicy.ExecutionAccelerators.Accelerator',
  },
  'ModelOptimizationPolicy.ExecutionAccelerators.Accelerator': {
    name: 'string',
    parameters: 'map<string,string>',
  },
  'ModelOptimizationPolicy.PinnedMemoryBuffer': {
    enable: 'bool',
  },
  ModelParameter: {
    string_value: 'string',
  },
  ModelWarmup: {
    name: 'string',
    batch_size: 'uint32',
    inputs: 'map<string,ModelWarmup.Input>',
    count: 'uint32',
  },
  'ModelWarmup.Input': {
    data_type: 'DataType',
    dims: 'repeated int64',
    zero_data: 'bool of input_data_type',
    random_data: 'bool of input_data_type',
    input_data_file: 'string of input_data_type',
  },
  ModelOperations: {
    op_library_filename: 'repeated string',
  },
  ModelTransactionPolicy: {
    decoupled: 'bool',
  },
  ModelRepositoryAgents: {
    agents: 'repeated ModelRepositoryAgents.Agent',
  },
  'ModelRepositoryAgents.Agent': {
    name: 'string',
    parameters: 'map<string,string>',
  },
  ModelResponseCache: {
    enable: 'bool',
  },
  ModelMetrics: {
    metric_control: 'repeated ModelMetrics.MetricControl',
  },
  'ModelMetrics.MetricControl': {
    metric_identifier: 'ModelMetrics.MetricControl.MetricIdentifier',
    histogram_options: 'ModelMetrics.MetricControl.HistogramOptions of metric_options',
  },
  'ModelMetrics.MetricControl.MetricIdentifier': {
    family: 'string',
  },
  'ModelMetrics.MetricControl.HistogramOptions': {
    buckets: 'repeated double',
  },
  ModelQueuePolicy: {
    timeout_action: 'ModelQueuePolicy.TimeoutAction',
    default_timeout_microseconds: 'uint64',
    allow_timeout_override: 'bool',
    max_queue_size: 'uint32',
  },
  ModelDynamicBatching: {
    preferred_batch_size: 'repeated int32',
    max_queue_delay_microseconds: 'uint64',
    preserve_ordering: 'bool',
    priority_levels: 'uint64',
    default_priority_level: 'uint64',
    default_queue_policy: 'ModelQueuePolicy',
    /** Queue policies by priority level; a key is the level in decimal. */
    priority_queue_policy: 'map<uint64,ModelQueuePolicy>',
  },
  ModelSequenceBatching: {
    direct: 'ModelSequenceBatching.StrategyDirect of strategy_choice',
    oldest: 'ModelSequenceBatching.StrategyOldest of strategy_choice',
    max_sequence_idle_microseconds: 'uint64',
    control_input: 'repeated ModelSequenceBatching.ControlInput',
    state: 'repeated ModelSequenceBatching.State',
    iterative_sequence: 'bool',
  },
  'ModelSequenceBatching.Control': {
    kind: 'ModelSequenceBatching.Control.Kind',
    int32_false_true: 'repeated int32',
    fp32_false_true: 'repeated float',
    bool_false_true: 'repeated bool',
    data_type: 'DataType',
  },
  'ModelSequenceBatching.ControlInput': {
    name: 'string',
    control: 'repeated ModelSequenceBatching.Control',
  },
  'ModelSequenceBatching.InitialState': {
    data_type: 'DataType',
    dims: 'repeated int64',
    zero_data: 'bool of state_data',
    data_file: 'string of state_data',
    name: 'string',
  },
  'ModelSequenceBatching.State': {
    input_name: 'string',
    output_name: 'string',
    data_type: 'DataType',
    dims: 'repeated int64',
    initial_state: 'repeated ModelSequenceBatching.InitialState',
    use_same_buffer_for_input_output: 'bool',
    use_growable_memory: 'bool',
  },
  'ModelSequenceBatching.StrategyDirect': {
    max_queue_delay_microseconds: 'uint64',
    minimum_slot_utilization: 'float',
  },
  'ModelSequenceBatching.StrategyOldest': {
    max_candidate_sequences: 'int32',
    preferred_batch_size: 'repeated int32',
    max_queue_delay_microseconds: 'uint64',
    preserve_ordering: 'bool',
  },
  ModelEnsembling: {
    step: 'repeated ModelEnsembling.Step',
    max_inflight_requests: 'uint32',
  },
  'ModelEnsembling.Step': {
    model_name: 'string',
    /** Version of the model; -1 is the latest ready version. The proto's default is 0. */
    model_version: 'int64',
    /** Names of ensemble tensors by inputs of the model. */
    input_map: 'map<string,string>',
    /** Names of ensemble tensors by outputs of the model. */
    output_map: 'map<string,string>',
    model_namespace: 'string',
  },
  ModelConfig: {
    name: 'string',
    platform: 'string',
    backend: 'string',
    runtime: 'string',
    version_policy: 'ModelVersionPolicy',
    max_batch_size: 'int32',
    input: 'repeated ModelInput',
    output: 'repeated ModelOutput',
    batch_input: 'repeated BatchInput',
    batch_output: 'repeated BatchOutput',
    optimization: 'ModelOptimizationPolicy',
    dynamic_batching: 'ModelDynamicBatching of scheduling_choice',
    sequence_batching: 'ModelSequenceBatching of scheduling_choice',
    ensemble_scheduling: 'ModelEnsembling of scheduling_choice',
    instance_group: 'repeated ModelInstanceGroup',
    default_model_filename: 'string',
    cc_model_filenames: 'map<string,string>',
    metric_tags: 'map<string,string>',
    parameters: 'map<string,ModelParameter>',
    model_warmup: 'repeated ModelWarmup',
    model_operations: 'ModelOperations',
    model_transaction_policy: 'ModelTransactionPolicy',
    model_repository_agents: 'ModelRepositoryAgents',
    response_cache: 'ModelResponseCache',
    model_metrics: 'ModelMetrics',
  },
} as const

/** Numbers of enum values by enum and name; 0 is the default. `DataType` is not here: its values are those of `DATATYPES`. */
export const ENUMS = {
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
} as const
