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
