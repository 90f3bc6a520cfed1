export { BROKER_FLAGS, type BrokerFlags, toBrokerOptions } from './broker-flags.ts'
export { LocalBearer } from './local-bearer.ts'
export { LocalRouters } from './local-routers.ts'
export { type OpenRouterPeerOptions, openRouterPeer } from './peer/router-peer.ts'
export { type OpenStepPeerOptions, openStepPeer } from './peer/step-peer.ts'
export type { PeerSettings } from './peer-settings.ts'
export type {
  AnswerQuestion,
  AskOptions,
  BrokerOptions,
  PeerLoad,
  PeerQuestions,
  Question,
  RouterCalls,
  RouterPeer,
  RouterPeerOptions,
  StepPeer,
  StepPeerOptions,
} from './peers.ts'
export {
  deliverResponses,
  type ResponseReceiver,
  ResponseStream,
  type StreamedResponse,
} from './response-stream.ts'
export { type AnnouncedLoad, type ServedRevision, StepDirectory } from './step-directory.ts'
export type {
  BearerResponse,
  EnvelopeHandler,
  EnvelopeSink,
  ReplicaAddress,
  TensorBearer,
} from './tensor-bearer.ts'
