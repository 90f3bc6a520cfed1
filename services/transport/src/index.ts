export { BROKER_FLAGS, type BrokerFlags, toBrokerOptions } from './broker-flags.ts'
export { LocalBearer } from './local-bearer.ts'
export type {
  BrokerOptions,
  PeerLoad,
  PeerQuestions,
  RouterPeer,
  RouterPeerOptions,
  StepPeer,
  StepPeerOptions,
} from './peers.ts'
export { ResponseStream } from './response-stream.ts'
export { type ServedRevision, StepDirectory } from './step-directory.ts'
export type {
  BearerResponse,
  EnvelopeHandler,
  EnvelopeSink,
  ReplicaAddress,
  StepTimes,
  TensorBearer,
} from './tensor-bearer.ts'
