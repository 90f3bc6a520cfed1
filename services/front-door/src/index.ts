export { DOOR_FLAGS } from './door-flags.ts'
export {
  type DoorPorts,
  type Doors,
  type DoorsOptions,
  openDoors,
  openMetricsDoor,
} from './doors.ts'
export {
  GRPC_SERVER_DEFAULTS,
  type GrpcServer,
  type GrpcServerBounds,
  type GrpcServerOptions,
  startGrpcServer,
} from './grpc/grpc-server.ts'
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
export { requestedNames, toAnswer } from './served/answer.ts'
export {
  areAllReady,
  type FoundVersion,
  findModel,
  findVersion,
  type ListedModel,
  type ListedVersion,
  readyVersions,
  selectStatistics,
  toIndex,
} from './served/listed-model.ts'
export { refuseFailures } from './served/refuse-failures.ts'
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
