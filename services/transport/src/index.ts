export { BROKER_FLAGS, type BrokerFlags, toBrokerOptions } from './broker-flags.ts'
export { type OpenRouterPeerOptions, openRouterPeer } from './peer/router-peer.ts'
export { type OpenStepPeerOptions, openStepPeer } from './peer/step-peer.ts'
export type { PeerSettings } from './peer-settings.ts'
export type {
  AnswerQuestion,
  AskOptions,
  BrokerOptions,
  FindReplicaExecutor,
  PeerLoad,
  PeerQuestions,
  Question,
  RouterCalls,
  RouterPeer,
  RouterPeerOptions,
  StepPeer,
  StepPeerOptions,
} from './peers.ts'
export { executeWithRetries, type FailedAttempt } from './retries.ts'
export {
  type AnnouncedLoad,
  type ReplicaAddress,
  type ServedRevision,
  StepDirectory,
} from './step-directory.ts'
