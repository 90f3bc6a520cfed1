export { FETCH_FLAGS } from './fetch/fetch-flags.ts'
export { FETCH_USAGE, FetchResult, runFetch } from './fetch/run-fetch.ts'
export { findModelFaults, type ModelFaults } from './load/find-model-faults.ts'
export { requireDevices } from './load/instance-devices.ts'
export { completeConfigOf } from './load/prepare-model.ts'
export { type BackendConfig, readBackendConfig } from './serve/backend-config.ts'
export {
  checkModelFlags,
  MODEL_FLAGS,
  type ModelFlags,
  openDevices,
  openEngines,
  openRepository,
  toStepSettings,
} from './serve/model-flags.ts'
export { type StartStepOptions, startStep } from './serve/start-step.ts'
export { toEndpointOptions } from './serve/step-endpoint.ts'
export { stepExecutable } from './serve/step-executable.ts'
export { STEP_FLAGS, type StepFlags } from './serve/step-flags.ts'
export { openStep, type Step } from './step.ts'
export type { StepOptions } from './step-options.ts'
