export type { Step, StepLoad, VersionLoad } from './step.ts'
