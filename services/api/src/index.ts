export { Constant } from './ensemble/constant.ts'
export { EnsembleExpose, type ExposeAuth, type ExposeIdentity } from './ensemble/ensemble-expose.ts'
export { EnsembleSpec, EnsembleStepSpec } from './ensemble/ensemble-spec.ts'
export { RETRY_CODES } from './ensemble/step-call.ts'
export {
  API_VERSION,
  EnsembleManifest,
  type Manifest,
  ModelManifest,
  modelNameOf,
  ROUTER_NAME,
  RouterManifest,
} from './manifests.ts'
export {
  applyModelOverrides,
  type BeyondConfig,
  ModelOverrides,
  toBeyondConfig,
  toConfigOverrides,
  toModelOverrides,
} from './model/model-overrides.ts'
export {
  Accelerator,
  DEFAULT_DEVICE,
  ModelResources,
  POD_FIELDS,
  PodTemplate,
} from './model/model-pods.ts'
export { DEFAULT_REPLICAS } from './model/model-scaling.ts'
export { ModelSpec } from './model/model-spec.ts'
export { findModelWarnings } from './model/model-warnings.ts'
export {
  ACCEPTED_LABEL,
  BUILTINS_LABEL,
  COMPONENT,
  ENSEMBLE_LABEL,
  FETCH,
  fetchReasonOf,
  isFetchContainer,
  isOfBuiltins,
  isOfRouter,
  isVerifyContainer,
  MODEL_LABEL,
  modelsServedBy,
  SERVES_PREFIX,
  servesLabel,
  VERIFY,
} from './names/pod-names.ts'
export { resourceNames } from './names/resource-names.ts'
export {
  type Claimant,
  compareClaims,
  hintOfResource,
  type NamedResource,
  nameConflict,
  notServedText,
} from './names/served-names.ts'
export { findRouterProblems, parseManifest } from './parse-manifest.ts'
export { ROUTER_CONSOLES, type RouterConsole, RouterSpec } from './router/router-spec.ts'
export { cel, celPattern, isMirrored } from './schema/cel.ts'
export { toAmount, toBytes, toMilliseconds } from './schema/fields.ts'
export {
  describeIssue,
  type SchemaProblem,
  toProblemText,
  toSchemaProblems,
} from './schema/schema-problems.ts'
export {
  conditionOf,
  type ResourceState,
  refusalOf,
  resourceState,
  WAITING_REASONS,
} from './status/resource-state.ts'
export { isToldByProcess, loadMessage, startText } from './status/start-text.ts'
export {
  Condition,
  EffectiveResources,
  ENSEMBLE_CONDITIONS,
  type EnsembleConditionType,
  EnsembleStatus,
  LastFailure,
  MODEL_CONDITIONS,
  MOST_PODS,
  MOST_SERVED,
  type ModelConditionType,
  ModelStart,
  ModelStatus,
  ROUTER_CONDITIONS,
  type RouterConditionType,
  RouterStatus,
  Signature,
  StepStatus,
  UNSEEN,
} from './status/status.ts'
export { type EdgeIdentity, EdgeRoutes, parseEdgeRoutes } from './wire/edge-routes.ts'
export { mergeStatistics } from './wire/merge-statistics.ts'
export {
  parseServedByRouter,
  parseStartProgress,
  parseStepLoad,
  ServedByRouter,
  StartProgress,
  StepLoad,
} from './wire/process-answers.ts'
export {
  parseSleepMark,
  parseWantedByRouter,
  SLEEP_ANNOTATION,
  type SleepMark,
  WantedByRouter,
} from './wire/router-demand.ts'
export { parseStatisticsJson, toStatisticsJson } from './wire/statistics-wire.ts'
export {
  type PinnedVersion,
  parseDescriptionJson,
  type ServedModel,
  type ServedVersion,
  type StepControl,
  type StepDescription,
  toDescriptionJson,
  type VersionState,
} from './wire/step-contract.ts'
export { ConfigJson, parseWire, readConfigJson } from './wire/wire-field.ts'
