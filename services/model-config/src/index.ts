export { countTexts } from './bytes-check.ts'
export { checkInferRequest, compileRequestCheck } from './check-infer-request.ts'
export {
  type CompletionInput,
  completeModelConfig,
  type InspectedModel,
} from './complete-model-config.ts'
export { DESCRIPTOR } from './descriptor.ts'
export { jsonConfigSchema } from './json-config-schema.ts'
export type {
  BatchInput,
  DataType,
  DynamicBatching,
  EnsembleStep,
  InstanceGroup,
  ModelConfig,
  ModelInput,
  ModelOutput,
  ModelWarmup,
  QueuePolicy,
  SequenceBatching,
  SequenceState,
  WarmupInput,
} from './model-config.ts'
export {
  isDecoupled,
  isEnsembleConfig,
  type ModelMetadata,
  modelMetadata,
  type TensorMetadata,
} from './model-metadata.ts'
export {
  chooseVersions,
  formatModelVersion,
  parseModelVersion,
  selectVersions,
} from './model-version.ts'
export { type NormaliseOptions, normaliseModelConfig } from './normalise-model-config.ts'
export { parseJsonConfig } from './parse-json-config.ts'
export {
  type ConfigPosition,
  emptyModelConfig,
  locateModelConfig,
  parseModelConfig,
} from './parse-model-config.ts'
export { printModelConfig } from './print-model-config.ts'
export {
  plainName,
  type QualifiedName,
  qualifyName,
  resolveName,
  splitName,
} from './qualified-name.ts'
export { applyOutputReshape, carryExtents } from './reshape.ts'
export { backendOfPlatform, hasOwnPlatforms, selectBackend } from './select-backend.ts'
export {
  type SequenceControl,
  type SequenceControlKind,
  sequenceControls,
  withSequenceTensors,
} from './sequence-tensors.ts'
export type { ModelSignature, ModelVersionSource, TensorSpec } from './signature.ts'
export type { BatchStatistics, ModelStatistics, StatisticDuration } from './statistics.ts'
export { type Json, toJsonConfig } from './to-json-config.ts'
export { noGpusAvailable } from './validate-instance-groups.ts'
export {
  faultsWhenRead,
  responseCacheFault,
  validateWhenLoaded,
  validateWhenRead,
} from './validate-model-config.ts'
export { withoutDefaults } from './without-defaults.ts'
