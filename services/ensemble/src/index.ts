export { findDependencies, orderEnsembles } from './ensemble-order.ts'
export type { ComposingModel, EnsemblePlan } from './ensemble-plan.ts'
export type { EnsembleRun, NamedEntry, RunAction, RunEvent, TensorEntry } from './ensemble-run.ts'
export {
  type CheckedConfig,
  composedModels,
  type FoundModel,
  findConfigFaults,
} from './find-config-faults.ts'
export { createEnsembleRun } from './graph-run.ts'
export {
  checkEnsemble,
  type EnsembleCheck,
  type EnsembleWorld,
  type KnownModel,
  summarizeProblems,
} from './manifest/check-ensemble.ts'
export { ACCEPTED_REASONS } from './manifest/ensemble-fault.ts'
export { modelOfStep } from './manifest/ensemble-graph.ts'
export { fromModelConfig } from './manifest/from-model-config.ts'
export { toEnsembleConfig } from './manifest/to-ensemble-config.ts'
export { completeEnsembleConfig, planEnsemble } from './plan-ensemble.ts'
export { retryDelayMs } from './retry-policy.ts'
export { selectOutputs } from './run-graph.ts'
export { validateEnsembleConfig } from './validate-ensemble-config.ts'
