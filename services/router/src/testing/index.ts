export { ensembleRevision, modelRevision } from './accepted-revision.ts'
export { openNatsRouter } from './nats-router.ts'
export { type RecordedSpan, recordedSpans } from './recorded-spans.ts'
export { echoing, ReplicaExecutors } from './replica-executors.ts'
export {
  chain,
  collect,
  ensembleIo,
  failure,
  floats,
  oneToOne,
  quiet,
  request,
  settle,
  step,
  toFloats,
} from './requests.ts'
export { type Answer, ScriptedRouterEndpoint } from './scripted-endpoint.ts'
export {
  type Delivery,
  type ReplicaScript,
  ScriptedReplicas,
  type ScriptedVersion,
} from './scripted-replicas.ts'
export { type ScriptedModel, scriptedRouter } from './scripted-router.ts'
export { type BeyondConfig, testRouter, toConfig, toDefinition } from './test-router.ts'
