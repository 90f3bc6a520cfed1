export type { Envelope, TensorHeader } from './envelope.ts'
export { type ApartTensor, decodeApartRequest } from './infer/apart-codec.ts'
export {
  decodeInferResponse,
  decodeStreamResponse,
  encodeInferRequest,
} from './infer/client-codec.ts'
export { readContents } from './infer/contents.ts'
export {
  type InferRequestMessage,
  type InferResponse,
  NO_PARAMETERS,
  type OutgoingRequest,
  type StreamResponse,
  type TensorMessage,
  type WireParameters,
} from './infer/infer-message.ts'
export { encodeInferResponsePieces, LEAST_PIECE_BYTES } from './infer/response-pieces.ts'
export { decodeInferRequest, encodeInferResponseFrame, RAW_INPUTS } from './infer/server-codec.ts'
export { encodeStreamResponseFrame } from './infer/stream-frame.ts'
export { toCorrelationText } from './message-bounds.ts'
export {
  CHUNK_HEAD_BYTES,
  type Chunk,
  type ChunkHead,
  decodeChunk,
  decodeChunkHead,
  encodeChunk,
  encodeChunkHead,
} from './messages/chunk-codec.ts'
export { decodeHeartbeat, encodeHeartbeat, sharesProtocol } from './messages/heartbeat.ts'
export {
  CALLERS_LIMIT,
  CHUNK_BYTES,
  DONE_LIMIT,
  INLINE_LIMIT_BYTES,
  INLINE_TOTAL_LIMIT_BYTES,
  MESSAGE_PROTOCOL_VERSION,
  RECEIVER_CREDIT_BYTES,
  SENDER_CREDIT_BYTES,
  WHOLE_CHUNK_BYTES,
} from './messages/limits.ts'
export type {
  ChunkHeader,
  DirectAddress,
  Heartbeat,
  Message,
  OutputHeader,
  SentHeartbeat,
  TensorPart,
  TransferCredit,
  WireError,
  WireTimes,
} from './messages/message.ts'
export { decodeMessage, encodeMessage } from './messages/message-codec.ts'
export { decodeToken, encodeToken } from './messages/subject-tokens.ts'
export { buildSubjects, type SubjectNames, type Subjects } from './messages/subjects.ts'
export { fromWireError, toWireError } from './messages/wire-error.ts'
export { modelConfigToProto } from './model-config-proto.ts'
export {
  type ReceivedMetadata,
  type ReceivedTensorMetadata,
  readMetadata,
} from './model-metadata.ts'
export { type Reflection, readReflection } from './reflection.ts'
export {
  checkFieldCount,
  decodeRepositoryRequest,
  type RepositoryParameter,
  type RepositoryRequestMessage,
} from './repository-request.ts'
export {
  type DeclaredInput,
  decodeGenerateRequest,
  type GenerateRequest,
} from './rest/decode-generate.ts'
export type { RestInput } from './rest/decode-inputs.ts'
export {
  decodeRestRequest,
  HEADER_LENGTH_HEADER,
  type RestInferRequest,
} from './rest/decode-request.ts'
export { encodeGenerateResponse } from './rest/encode-generate.ts'
export {
  encodeRestResponse,
  type RestBody,
} from './rest/encode-response.ts'
export { type JsonNeeds, jsonNeeds } from './rest/json-heap.ts'
export { parseJson } from './rest/json-text.ts'
export { toJsonText } from './rest/json-writer.ts'
export type { SharedPlace } from './rest/shared-place.ts'
export { parseTensorData } from './rest/tensor-data.ts'
export {
  inferenceServices,
  PROTO_OPTIONS,
  type RawInferenceService,
} from './services.ts'
export { statisticsBody, statisticsToProto } from './statistics-proto.ts'
export {
  fromGrpcStatus,
  toGrpcStatus,
} from './status/grpc-status.ts'
export { errorHeaders, toHttpStatus } from './status/http-status.ts'
export { STEPS_HEADER, STEPS_OF_FAILURES, STEPS_PARAMETER } from './step-times.ts'
