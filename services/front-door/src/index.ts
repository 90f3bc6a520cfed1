export { DOOR_FLAGS } from './door-flags.ts'
export { type DoorPorts, type Doors, type DoorsOptions, openDoors } from './doors.ts'
export type {
  IndexEntry,
  InferenceBackend,
  InferRequest,
  InferResponse,
  RequestedOutput,
  ResolvedModel,
} from './inference-backend.ts'
export {
  type ModelMetricLabels,
  ServerMetrics,
  type ServerMetricsOptions,
} from './metrics.ts'
export {
  type Execution,
  type FailedRequest,
  type FailureReason,
  StatisticsRecorder,
  type StatisticsRecorderOptions,
  type SuccessfulRequest,
  toFailureReason,
} from './statistics.ts'
export type { StepLabels, StepObservation } from './step-histograms.ts'
