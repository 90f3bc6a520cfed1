export {
  BROKER_FLAGS,
  type BrokerFlags,
  DIRECT_LISTENER_FLAGS,
  readBrokerFlags,
} from './broker-flags.ts'
export type { DirectOptions } from './direct/direct-sockets.ts'
export { type OpenRouterEndpointOptions, openRouterEndpoint } from './endpoint/router-endpoint.ts'
export { type OpenStepEndpointOptions, openStepEndpoint } from './endpoint/step-endpoint.ts'
export type { EndpointSettings } from './endpoint-settings.ts'
export type {
  AnswerQuestion,
  AskOptions,
  BrokerOptions,
  FindReplicaExecutor,
  MemberLoad,
  MemberQuestions,
  Question,
  RouterCalls,
  RouterEndpoint,
  RouterEndpointOptions,
  StepEndpoint,
  StepEndpointOptions,
  TransportCounts,
} from './endpoints.ts'
export type { ForeignMember } from './members/foreign-members.ts'
export {
  type AcquireOptions,
  type AnnouncedLoad,
  type Replica,
  type ReplicaAddress,
  ReplicaPlaces,
  revisionKey,
  type ServedRevision,
} from './replica-places.ts'
export { UNWEIGHED, type Work } from './replica-work.ts'
export { type FailedAttempt, retryOrFail } from './retries.ts'
export { type KnownReplica, StepDirectory } from './step-directory.ts'
export { transportFamilies } from './transport-families.ts'
