export {
  type CompletionInput,
  completeModelConfig,
  type InspectedModel,
} from './complete/complete-model-config.ts'
export {
  isDecoupled,
  isEnsembleConfig,
  type ModelMetadata,
  modelMetadata,
  type TensorMetadata,
} from './complete/model-metadata.ts'
export { type NormaliseOptions, normaliseModelConfig } from './complete/normalise-model-config.ts'
export { backendOfPlatform, hasOwnPlatforms, selectBackend } from './complete/select-backend.ts'
export {
  type SequenceControl,
  type SequenceControlKind,
  sequenceControls,
  withSequenceTensors,
} from './complete/sequence-tensors.ts'
export type { ModelSignature, ModelVersionSource, TensorSpec } from './complete/signature.ts'
export { jsonConfigSchema } from './json/json-config-schema.ts'
export { parseJsonConfig } from './json/parse-json-config.ts'
export { type Json, toJsonConfig } from './json/to-json-config.ts'
export { withoutDefaults } from './json/without-defaults.ts'
export { declareInput, declareOutput } from './model/declare-tensor.ts'
export { DESCRIPTOR } from './model/descriptor.ts'
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
} from './model/model-config.ts'
export {
  chooseVersions,
  formatModelVersion,
  parseModelVersion,
  selectVersions,
} from './model/model-version.ts'
export {
  plainName,
  type QualifiedName,
  qualifyName,
  renameStepModels,
  resolveName,
  splitName,
} from './model/qualified-name.ts'
export type { BatchStatistics, ModelStatistics, StatisticDuration } from './model/statistics.ts'
export { countTexts } from './requests/bytes-check.ts'
export { checkInferRequest, compileRequestCheck } from './requests/check-infer-request.ts'
export { applyOutputReshape, carryExtents } from './requests/reshape.ts'
export {
  type ConfigPosition,
  emptyModelConfig,
  locateModelConfig,
  parseModelConfig,
} from './text/parse-model-config.ts'
export { printModelConfig } from './text/print-model-config.ts'
export { noGpusAvailable } from './validate/validate-instance-groups.ts'
export {
  faultsWhenRead,
  responseCacheFault,
  validateWhenLoaded,
  validateWhenRead,
} from './validate/validate-model-config.ts'
