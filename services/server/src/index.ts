export { AccessFile } from './access/access-file.ts'
export { ACCESS_FLAGS } from './access/access-flags.ts'
export type { Caller } from './access/caller.ts'
export { HEADER_FLAGS, readHeaderRules } from './access/header-rules.ts'
export { CACHE_FLAGS, openCache } from './cache/cache-flags.ts'
export { isKeyedByTurns } from './cache/cache-key.ts'
export { CacheStatistics } from './cache/cache-statistics.ts'
export { executeCached } from './cache/model-cache.ts'
export type { ResponseCache } from './cache/response-cache.ts'
export { checkPorts } from './check-ports.ts'
export type { EdgeAccess } from './edge/edge-selector.ts'
export { toFailureReason } from './failure-reasons.ts'
export { FIRST_RESPONSE_FAMILY, firstResponseBuckets } from './first-responses.ts'
export type {
  IndexEntry,
  InferenceBackend,
  LoadParameters,
  ModelControl,
  ResolvedModel,
} from './inference-backend.ts'
export { ServerMetrics } from './metrics.ts'
export { METRICS_FLAGS, readMetricsFlags } from './metrics-flags.ts'
export type { JsonAnswers } from './metrics-server.ts'
export type { MetricFamily } from './metrics-text.ts'
export { openMetricsServer } from './open-metrics-server.ts'
export type { PageServerOptions } from './page-server.ts'
export { POLL_FLAGS } from './poll-flags.ts'
export { type ControlGuard, createControlGuard } from './request/control-guard.ts'
export { FLAGS_RULE, MODEL_RESOURCE_RULES, requireControl } from './request/model-control.ts'
export { answerPageInfer } from './rest/page-infer.ts'
export { answerPageStream } from './rest/page-stream.ts'
export { isLocalName, refuseForeignPage } from './rest/refuse-foreign-page.ts'
export { jsonReply, type RestReply } from './rest/rest-reply.ts'
export type { RestRoute } from './rest/rest-route.ts'
export { type FoundVersion, findModel, findVersion } from './served/find-model.ts'
export { decorateModel } from './request/decorate.ts'
export { withNames } from './served/index-names.ts'
export {
  areAllReady,
  isUnloadedReason,
  type ListedModel,
  type ListedVersion,
  readyVersions,
  selectStatistics,
  toIndex,
  unloadedReason,
} from './served/listed-model.ts'
export { loadFailed, loadOvertaken, pollFailed, versionFailures } from './served/load-errors.ts'
export { refuseFailures } from './served/refuse-failures.ts'
export { REFUSED_OVER_BROKERS, SERVER_FLAGS } from './server-flags.ts'
export {
  checkAnswered,
  openServers,
  type Servers,
  type ServersOptions,
} from './servers.ts'
export { StatisticsRecorder } from './statistics.ts'
export type { Execution } from './statistics-snapshot.ts'
export type { StepLabels, StepParts } from './step-measures.ts'
export type { StepTotals } from './step-totals.ts'
export { checkTlsFlags } from './tls/secure-options.ts'
export { openTraces } from './trace/open-traces.ts'
export {
  type CaptureState,
  type CaughtRequest,
  RequestCaptures,
  type WantedRequest,
} from './trace/request-captures.ts'
export { withoutInner } from './trace/step-spans.ts'
export { readTraceFlags, TRACE_FLAGS, withTraceFlags } from './trace/trace-flags.ts'
export { traceRequests } from './trace/traced-backend.ts'
