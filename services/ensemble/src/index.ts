export {
  AcceptedEnsemble,
  AcceptedModel,
  parseAcceptedJson,
  toAcceptedJson,
} from './accepted/accepted.ts'
export { EdgeRoutes, parseEdgeRoutes } from './accepted/edge-routes.ts'
export {
  parseServedByRouter,
  parseStepLoad,
  ServedByRouter,
  StepLoad,
} from './accepted/process-answers.ts'
export { createEnsembleRun, type EnsembleRunOptions, STEP_ATTEMPTS } from './create-ensemble-run.ts'
export { type EnsembleOrder, findDependencies, orderEnsembles } from './ensemble-order.ts'
export type {
  ComposingModel,
  EnsemblePlan,
  PlanEnsembleTensor,
  PlanStep,
  PlanStepInput,
  PlanStepOutput,
  PlanTensor,
} from './ensemble-plan.ts'
export type { EnsembleRules } from './ensemble-rules.ts'
export type {
  EnsembleRun,
  RunAction,
  RunEvent,
  StepInput,
  TensorEntry,
  TensorTable,
} from './ensemble-run.ts'
export {
  type CelRule,
  cel,
  isMirrored,
} from './manifest/cel.ts'
export { EnsembleExpose } from './manifest/ensemble-expose.ts'
export {
  ACCEPTED_REASONS,
  type AcceptedReason,
} from './manifest/ensemble-fault.ts'
export { EnsembleSpec, EnsembleStepSpec } from './manifest/ensemble-spec.ts'
export { toMilliseconds } from './manifest/fields.ts'
export { fromModelConfig, type ImportOptions } from './manifest/from-model-config.ts'
export {
  type EnsembleWorld,
  judgeEnsemble,
  type KnownModel,
  type Verdict,
} from './manifest/judge-ensemble.ts'
export {
  API_VERSION,
  EnsembleManifest,
  type Manifest,
  ModelManifest,
  modelNameOf,
} from './manifest/manifests.ts'
export {
  applyModelOverrides,
  formatOfBackend,
  ModelOverrides,
  toModelOverrides,
} from './manifest/model-overrides.ts'
export {
  Accelerator,
  DEFAULT_DEVICE,
  DisruptionBudget,
  ModelResources,
  ModelRollout,
  PodTemplate,
} from './manifest/model-pods.ts'
export { ModelScaling } from './manifest/model-scaling.ts'
export { ModelStorage } from './manifest/model-serving.ts'
export { ModelSpec } from './manifest/model-spec.ts'
export { type ParsedManifest, parseManifest } from './manifest/parse-manifest.ts'
export { resourceNames } from './manifest/resource-names.ts'
export {
  inOurWords,
  type SchemaProblem,
  toProblemText,
  toSchemaProblems,
} from './manifest/schema-problems.ts'
export {
  type Claimant,
  compareClaims,
  type NamedResource,
  nameConflict,
  notServedText,
} from './manifest/served-names.ts'
export {
  Condition,
  ENSEMBLE_CONDITIONS,
  type EnsembleConditionType,
  EnsembleStatus,
  LastFailure,
  MODEL_CONDITIONS,
  type ModelConditionType,
  ModelStatus,
  Signature,
  StepStatus,
} from './manifest/status.ts'
export { type ConvertedEnsemble, toEnsembleConfig } from './manifest/to-ensemble-config.ts'
export { mergeStatistics } from './merge-statistics.ts'
export { completeEnsembleConfig, planEnsemble } from './plan-ensemble.ts'
export { retryDelayMs } from './retry-policy.ts'
export { parseStatisticsJson, toStatisticsJson } from './statistics-wire.ts'
export type {
  PinnedVersion,
  ServedModel,
  ServedVersion,
  StepControl,
  StepDescription,
  VersionState,
} from './step-contract.ts'
export { findStepCycle } from './step-dependencies.ts'
export { parseDescriptionJson, toDescriptionJson } from './step-wire.ts'
export { validateEnsembleConfig } from './validate-ensemble-config.ts'
