export { ensembleRevision, modelRevision } from './accepted-revision.ts'
export { echoing } from './replica-executors.ts'
export { type Answer, ScriptedRouterEndpoint } from './scripted-endpoint.ts'
export {
  collect,
  type Delivery,
  type ReplicaScript,
  ScriptedReplicas,
  type ScriptedVersion,
} from './scripted-replicas.ts'
export { floats, type ScriptedModel, scriptedRouter, toFloats } from './scripted-router.ts'
