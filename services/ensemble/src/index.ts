export type {
  ServedModel,
  ServedVersion,
  StepControl,
  StepDescription,
  VersionState,
} from './step-contract.ts'
