export {
  AcceptedEnsemble,
  AcceptedModel,
  parseAcceptedJson,
  toAcceptedJson,
} from './accepted/accepted.ts'
export { type EdgeIdentity, EdgeRoutes, parseEdgeRoutes } from './accepted/edge-routes.ts'
export {
  parseServedByRouter,
  parseStepLoad,
  ServedByRouter,
  StepLoad,
} from './accepted/process-answers.ts'
export { findDependencies, orderEnsembles } from './ensemble-order.ts'
export type {
  ComposingModel,
  EnsemblePlan,
} from './ensemble-plan.ts'
export type { EnsembleRules, StepHedge } from './ensemble-rules.ts'
export type {
  EnsembleRun,
  NamedEntry,
  RunAction,
  RunEvent,
  TensorEntry,
} from './ensemble-run.ts'
export {
  type CheckedConfig,
  composedModels,
  type FoundModel,
  findConfigFaults,
} from './find-config-faults.ts'
export { createEnsembleRun } from './graph-run.ts'
export { cel, celPattern, isMirrored } from './manifest/cel.ts'
export {
  checkEnsemble,
  type EnsembleCheck,
  type EnsembleWorld,
  type KnownModel,
  summarizeProblems,
} from './manifest/check-ensemble.ts'
export { EnsembleExpose, type ExposeAuth, type ExposeIdentity } from './manifest/ensemble-expose.ts'
export { ACCEPTED_REASONS } from './manifest/ensemble-fault.ts'
export { modelOfStep } from './manifest/ensemble-graph.ts'
export { EnsembleSpec } from './manifest/ensemble-spec.ts'
export { toBytes, toMilliseconds } from './manifest/fields.ts'
export { fromModelConfig } from './manifest/from-model-config.ts'
export {
  API_VERSION,
  EnsembleManifest,
  type Manifest,
  ModelManifest,
  modelNameOf,
  ROUTER_NAME,
  RouterManifest,
} from './manifest/manifests.ts'
export {
  applyModelOverrides,
  type BeyondConfig,
  ModelOverrides,
  toBeyondConfig,
  toConfigOverrides,
  toModelOverrides,
} from './manifest/model-overrides.ts'
export {
  Accelerator,
  DEFAULT_DEVICE,
} from './manifest/model-pods.ts'
export { DEFAULT_REPLICAS } from './manifest/model-scaling.ts'
export { ModelSpec } from './manifest/model-spec.ts'
export { findModelWarnings } from './manifest/model-warnings.ts'
export { findRouterProblems, parseManifest } from './manifest/parse-manifest.ts'
export {
  ACCEPTED_LABEL,
  COMPONENT,
  FETCH,
  FETCH_REASONS,
  MODEL_LABEL,
  VERIFY,
} from './manifest/pod-names.ts'
export { resourceNames } from './manifest/resource-names.ts'
export {
  conditionOf,
  type ReportedResource,
  type ResourceState,
  refusalOf,
  resourceState,
  WAITING_REASONS,
} from './manifest/resource-state.ts'
export { ROUTER_CONSOLES, type RouterConsole, RouterSpec } from './manifest/router-spec.ts'
export {
  describeIssue,
  type SchemaProblem,
  toProblemText,
  toSchemaProblems,
} from './manifest/schema-problems.ts'
export {
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
  MOST_PODS,
  MOST_SERVED,
  type ModelConditionType,
  ModelStatus,
  ROUTER_CONDITIONS,
  type RouterConditionType,
  RouterStatus,
  Signature,
  StepStatus,
} from './manifest/status.ts'
export { toEnsembleConfig } from './manifest/to-ensemble-config.ts'
export { mergeStatistics } from './merge-statistics.ts'
export { completeEnsembleConfig, planEnsemble } from './plan-ensemble.ts'
export { retryDelayMs } from './retry-policy.ts'
export { selectOutputs } from './run-graph.ts'
export { parseStatisticsJson, toStatisticsJson } from './statistics-wire.ts'
export {
  type PinnedVersion,
  parseDescriptionJson,
  type ServedModel,
  type ServedVersion,
  type StepControl,
  type StepDescription,
  toDescriptionJson,
  type VersionState,
} from './step-contract.ts'
export { validateEnsembleConfig } from './validate-ensemble-config.ts'
export { parseWire } from './wire-field.ts'
