export { type PreparedModel, prepareModel } from './load/prepare-model.ts'
export { openStep } from './open-step.ts'
export type { Step, StepLoad, VersionLoad } from './step.ts'
export type { StepOptions } from './step-options.ts'
