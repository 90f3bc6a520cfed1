export {
  ADMISSION_DEFAULTS,
  Admission,
  type AdmissionBounds,
  type AdmissionTicket,
} from './admission.ts'
export { DOOR_FLAGS } from './door-flags.ts'
export { type DoorPorts, type Doors, type DoorsOptions, openDoors } from './doors.ts'
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
  type StepLabels,
  type StepObservation,
} from './metrics.ts'
export {
  type MetricsServer,
  type MetricsServerOptions,
  type MetricsSource,
  startMetricsServer,
} from './metrics-server.ts'
export { classifyOutputs } from './request/classify.ts'
export { TIMEOUT_HEADER } from './rest/rest-call.ts'
export {
  REST_DEFAULTS,
  type RestBounds,
  type RestServerOptions,
} from './rest/rest-options.ts'
export { type RestServer, startRestServer } from './rest/rest-server.ts'
export { SERVER_EXTENSIONS, type ServerIdentity } from './server-identity.ts'
export {
  type Execution,
  FAILURE_REASONS,
  type FailedRequest,
  type FailureReason,
  StatisticsRecorder,
  type StatisticsRecorderOptions,
  type SuccessfulRequest,
  toFailureReason,
} from './statistics.ts'
