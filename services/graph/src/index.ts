export {
  type AcceptedEnsemble,
  type AcceptedModel,
  parseAcceptedJson,
  toAcceptedJson,
} from './accepted.ts'
export {
  type Callee,
  type CallRules,
  fallbackOf,
  type OnError,
  type StepHedge,
  type StepRetry,
} from './call-rules.ts'
export { ACCEPTED_REASONS, type Problem } from './check/problem.ts'
export { validateGraph } from './check/validate-graph.ts'
export { holds } from './conditions.ts'
export { describeStep } from './describe-step.ts'
export {
  calledNamesOf,
  calleesOf,
  filesOfBuiltins,
  type Graph,
  type GraphStep,
  modelsOf,
  optionalOutputsOf,
  type Source,
  tensorName,
  tensorsOf,
} from './graph.ts'
export { fromModelConfig } from './import/from-model-config.ts'
export { findParts } from './part/find-parts.ts'
export { type FoldedPlan, foldPlan } from './part/fold-plan.ts'
export {
  definePart,
  MAX_PART_TEXT,
  PART_HOST,
  type PartDefinition,
  planPart,
  readPartText,
  readProgram,
  toPartText,
  toProgram,
} from './part/part-definition.ts'
export { constantData, constantOf } from './plan/constants.ts'
export { orderEnsembles } from './plan/ensemble-order.ts'
export type {
  ComposingModel,
  EnsemblePlan,
  PlanBuiltin,
  PlanForEach,
  PlanLoop,
  PlanPart,
  PlanStep,
} from './plan/ensemble-plan.ts'
export { completeEnsembleConfig, planEnsemble } from './plan/plan-ensemble.ts'
export { selectOutputs } from './plan/run-graph.ts'
export { readConfigGraph } from './read/read-config.ts'
export { readValidManifest } from './read/read-manifest.ts'
export { modelOfStep, modelsOfStep } from './read/resolve-references.ts'
export { retryDelayMs } from './retry-policy.ts'
export type {
  EnsembleRun,
  NamedEntry,
  RunAction,
  RunEvent,
  TensorEntry,
} from './run/ensemble-run.ts'
export { createEnsembleRun } from './run/graph-run.ts'
export { FAILED, LENGTHS, signatureOf } from './step-signature.ts'
export { type CheckedConfig, checkConfig } from './validate/check-config.ts'
export { checkEnsemble, type EnsembleCheck, summarizeProblems } from './validate/check-manifest.ts'
export type { EnsembleWorld, KnownModel } from './validate/find-models.ts'
