export type { Envelope, TensorHeader } from './envelope.ts'
export type { GRPCInferenceServiceClient } from './gen/inference/GRPCInferenceService.ts'
export type { ModelConfig as ModelConfigMessage } from './gen/inference/ModelConfig.ts'
export type { ModelStatisticsResponse } from './gen/inference/ModelStatisticsResponse.ts'
export { type ReadContents, readContents } from './infer/contents.ts'
export { decodeInferRequest } from './infer/decode-request.ts'
export { decodeInferResponse, decodeStreamResponse } from './infer/decode-response.ts'
export {
  encodeInferRequest,
  encodeInferResponseFrame,
  encodeStreamResponseFrame,
} from './infer/encode.ts'
export {
  type InferRequestMessage,
  type InferRequestParts,
  type InferResponseParts,
  NO_PARAMETERS,
  type RequestedOutputMessage,
  type StreamResponseParts,
  type TensorMessage,
  type WireParameters,
} from './infer/infer-message.ts'
export { InferStream } from './infer-stream.ts'
export {
  type InferCallOptions,
  InferenceClient,
  type InferenceClientOptions,
} from './inference-client.ts'
export { toCorrelationText } from './message-bounds.ts'
export { modelConfigToProto } from './model-config-proto.ts'
export { type Chunk, decodeChunk, encodeChunk } from './peer/chunk-codec.ts'
export { decodeHeartbeat, encodeHeartbeat } from './peer/heartbeat.ts'
export {
  CALLERS_LIMIT,
  CHUNK_BYTES,
  HEARTBEAT_REVISIONS,
  INLINE_LIMIT_BYTES,
  INLINE_TOTAL_LIMIT_BYTES,
  PEER_PROTOCOL_VERSION,
  RECEIVER_CREDIT_BYTES,
  SENDER_CREDIT_BYTES,
  WHOLE_CHUNK_BYTES,
} from './peer/limits.ts'
export { decodePeerMessage, encodePeerMessage } from './peer/peer-codec.ts'
export type {
  ChunkHeader,
  Heartbeat,
  OutputHeader,
  PeerMessage,
  TensorPart,
  TransferCredit,
  WireError,
  WireTimes,
} from './peer/peer-message.ts'
export { decodeToken, encodeToken } from './peer/subject-tokens.ts'
export { type PeerSubjects, peerSubjects, type SubjectNames } from './peer/subjects.ts'
export { fromWireError, toWireError } from './peer/wire-error.ts'
export type { RestRequestedOutput } from './rest/decode-outputs.ts'
export {
  decodeRestRequest,
  HEADER_LENGTH_HEADER,
  type RestInferBody,
  type RestInferRequest,
} from './rest/decode-request.ts'
export {
  encodeRestResponse,
  type RestBody,
  type RestInferResponse,
} from './rest/encode-response.ts'
export { type JsonDocument, parseJson } from './rest/json-text.ts'
export { toJsonText } from './rest/json-writer.ts'
export {
  type InferenceServices,
  inferenceServices,
  PROTO_DIRECTORY,
  PROTO_OPTIONS,
  type RawInferenceService,
} from './services.ts'
export { statisticsToProto } from './statistics-proto.ts'
export {
  ERROR_DOMAIN,
  fromGrpcStatus,
  type GrpcStatus,
  STATUS_DETAILS_KEY,
  toGrpcStatus,
} from './status/grpc-status.ts'
export { errorHeaders, toHttpStatus } from './status/http-status.ts'
