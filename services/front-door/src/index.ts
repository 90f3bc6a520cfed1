export {
  ADMISSION_DEFAULTS,
  Admission,
  type AdmissionBounds,
  type AdmissionTicket,
} from './admission.ts'
export type {
  IndexEntry,
  InferenceBackend,
  InferRequest,
  InferResponse,
  ModelMetadata,
  RequestedOutput,
  ResolvedModel,
  TensorMetadata,
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
  REST_IDENTITY,
  type RestBounds,
  type RestServerOptions,
} from './rest/rest-options.ts'
export { type RestServer, startRestServer } from './rest/rest-server.ts'
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
