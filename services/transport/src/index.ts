export { BROKER_FLAGS, type BrokerFlags, toBrokerOptions } from './broker-flags.ts'
export { LocalBearer } from './local-bearer.ts'
export { type OpenRouterPeerOptions, openRouterPeer } from './peer/router-peer.ts'
export { type OpenStepPeerOptions, openStepPeer } from './peer/step-peer.ts'
export { PEER_DEFAULTS, type PeerSettings } from './peer-settings.ts'
export type {
  BrokerOptions,
  PeerLoad,
  PeerQuestions,
  RouterPeer,
  RouterPeerOptions,
  StepPeer,
  StepPeerOptions,
} from './peers.ts'
export { deliverResponses, type ResponseReceiver, ResponseStream } from './response-stream.ts'
export { type AnnouncedLoad, type ServedRevision, StepDirectory } from './step-directory.ts'
export type {
  BearerResponse,
  EnvelopeHandler,
  EnvelopeSink,
  ReplicaAddress,
  StepTimes,
  TensorBearer,
} from './tensor-bearer.ts'
