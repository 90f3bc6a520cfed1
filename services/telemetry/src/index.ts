export { FIRST_RESPONSE_FAMILY, firstResponseBuckets } from './metrics/first-responses.ts'
export { ServerMetrics } from './metrics/metrics.ts'
export { METRICS_FLAGS, readMetricsFlags } from './metrics/metrics-flags.ts'
export { OPEN_METRICS_TYPE, prefersOpenMetrics, toOpenMetrics } from './metrics/open-metrics.ts'
export { type EndedRequest, RequestSeconds } from './metrics/request-seconds.ts'
export { formatMetrics, type MetricFamily, type MetricSeries } from './metrics-text.ts'
export { joinObservers, logObserverFailures } from './requests/join-observers.ts'
export { type ObservedRequest, observeRequest } from './requests/observe-request.ts'
export { type CacheObserver, CacheStatistics } from './statistics/cache-statistics.ts'
export { StatisticsRecorder } from './statistics/statistics.ts'
export type { StepCallTimes, StepLabels } from './statistics/step-measures.ts'
export type { StepTotals } from './statistics/step-totals.ts'
export { openTraces } from './trace/open-traces.ts'
export {
  readTraceChanges,
  type WrittenTraceSettings,
  writtenTraceSettings,
} from './trace/read-trace-changes.ts'
export { type CaptureState, RequestCaptures, type WantedRequest } from './trace/request-captures.ts'
export { traceRequests } from './trace/request-traces.ts'
export { type RecordedSteps, type StepSpan, StepSpans, withoutInner } from './trace/step-spans.ts'
export { TraceFile } from './trace/trace-file.ts'
export {
  readTraceFlags,
  TRACE_FLAGS,
  type TraceConfig,
  withTraceFlags,
} from './trace/trace-flags.ts'
export { type TraceChanges, TraceSettings } from './trace/trace-settings.ts'
