export { checkInferRequest, compileRequestCheck } from './check-infer-request.ts'
export {
  type CompletionInput,
  completeModelConfig,
  type InspectedModel,
} from './complete-model-config.ts'
export { DESCRIPTOR } from './descriptor.ts'
export type {
  Descriptor,
  EnumDescriptor,
  FieldDescriptor,
  MessageDescriptor,
  ScalarType,
} from './descriptor-types.ts'
export type {
  Accelerator,
  BatchInput,
  BatchOutput,
  CudaGraphShape,
  CudaOptimization,
  DataType,
  DynamicBatching,
  EnsembleScheduling,
  EnsembleStep,
  InstanceGroup,
  InstanceKind,
  ModelConfig,
  ModelInput,
  ModelOptimization,
  ModelOutput,
  ModelParameter,
  ModelWarmup,
  QueuePolicy,
  RateLimiter,
  RateLimiterResource,
  SecondaryDevice,
  SequenceBatching,
  SequenceControl,
  SequenceState,
  TensorFormat,
  TensorReshape,
  VersionPolicy,
  WarmupInput,
} from './model-config.ts'
export {
  isDecoupled,
  isEnsembleConfig,
  type ModelMetadata,
  modelMetadata,
  type TensorMetadata,
} from './model-metadata.ts'
export { parseModelVersion, selectVersions } from './model-version.ts'
export { type NormaliseOptions, normaliseModelConfig } from './normalise-model-config.ts'
export { applyOutputReshape } from './output-reshape.ts'
export { parseJsonConfig } from './parse-json-config.ts'
export { emptyModelConfig, parseModelConfig } from './parse-model-config.ts'
export { printModelConfig } from './print-model-config.ts'
export type { InferRequest } from './request-rules.ts'
export { type BackendChoice, backendOfPlatform, selectBackend } from './select-backend.ts'
export type { ModelSignature, ModelVersionSource, TensorSpec } from './signature.ts'
export type { BatchStatistics, ModelStatistics, StatisticDuration } from './statistics.ts'
export { type Json, toJsonConfig } from './to-json-config.ts'
export { noGpusAvailable, type WithoutGpus } from './validate-instance-groups.ts'
export {
  type ValidationOptions,
  validateModelConfig,
  validateWhenLoaded,
  validateWhenRead,
} from './validate-model-config.ts'
