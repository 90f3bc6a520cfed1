export { BROKER_FLAGS, type BrokerFlags, toBrokerOptions } from './broker-flags.ts'
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
} from './endpoints.ts'
export { executeWithRetries, type FailedAttempt } from './retries.ts'
export {
  type AnnouncedLoad,
  type ReplicaAddress,
  type ServedRevision,
  StepDirectory,
} from './step-directory.ts'
