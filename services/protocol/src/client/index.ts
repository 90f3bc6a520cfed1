export type { GRPCInferenceServiceClient } from '../gen/inference/GRPCInferenceService.ts'
export { InferStream } from './infer-stream.ts'
export {
  type InferCallOptions,
  InferenceClient,
} from './inference-client.ts'
export { openHealthClient, openObjectClient } from './object-clients.ts'
