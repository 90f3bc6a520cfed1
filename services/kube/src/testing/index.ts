export type { ApiServerOptions, ApiUser } from './api-server.ts'
export type { CountedWrite, WriteHooks } from './counted-writes.ts'
export type { Fault, FaultRule, ProxiedRequest } from './fault-rules.ts'
export { findKubeBinaries, withoutKube } from './find-kube-binaries.ts'
export {
  type HttpFaultProxy,
  startHttpFaultProxy,
} from './http-fault-proxy.ts'
export { installCrd } from './install-crd.ts'
export type { PastState } from './past-states.ts'
export {
  type PlainAnswer,
  type PlainClient,
  type PlainObject,
  type PlainRequest,
  plainClient,
} from './plain-client.ts'
export { type ApiServer, startApiServer } from './start-api-server.ts'
export { takeForwards } from './take-forwards.ts'
