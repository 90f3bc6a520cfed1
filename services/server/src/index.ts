export type { BrokerMember } from './broker-members.ts'
export { checkPorts } from './check-ports.ts'
export { openClientRules } from './client-rules.ts'
export type { JsonAnswers } from './metrics-server.ts'
export { openRegions } from './open-regions.ts'
export type { PageServerOptions } from './page-server.ts'
export { POLL_FLAGS } from './poll-flags.ts'
export {
  type OpenProbes,
  type ProcessOptions,
  type ServedParts,
  serveProcess,
} from './serve-process.ts'
export { REFUSED_OVER_BROKERS, SERVER_FLAGS } from './server-flags.ts'
export { type EdgeServersOptions, openServers } from './servers.ts'
export {
  openShared,
  type ServingFlags,
  type SharedOptions,
  type SharedParts,
} from './shared-parts.ts'
