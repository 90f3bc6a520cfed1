export { LocalBearer } from './local-bearer.ts'
export { deliverResponses, type ResponseReceiver, ResponseStream } from './response-stream.ts'
export { type ServedRevision, StepDirectory } from './step-directory.ts'
export type {
  BearerResponse,
  EnvelopeHandler,
  EnvelopeSink,
  ReplicaAddress,
  StepTimes,
  TensorBearer,
} from './tensor-bearer.ts'
