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
export type {
  EnsembleRun,
  RunAction,
  RunEvent,
  StepInput,
  TensorEntry,
  TensorTable,
} from './ensemble-run.ts'
export { mayLoad } from './may-load.ts'
export { mergeStatistics } from './merge-statistics.ts'
export { completeEnsembleConfig, planEnsemble } from './plan-ensemble.ts'
export { retryDelayMs } from './retry-policy.ts'
export {
  parseStatisticsJson,
  parseStatisticsQuestion,
  type StatisticsQuestion,
  toStatisticsJson,
} from './statistics-wire.ts'
export type {
  LoadableModels,
  PinnedVersion,
  ServedModel,
  ServedVersion,
  StepControl,
  StepDescription,
  VersionState,
} from './step-contract.ts'
export { parseDescriptionJson, toDescriptionJson } from './step-wire.ts'
export { validateEnsembleConfig } from './validate-ensemble-config.ts'
export {
  isNewer,
  parseWantedJson,
  toWantedJson,
  type WantedEnsemble,
  type WantedModel,
} from './wanted-wire.ts'
