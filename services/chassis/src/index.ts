export { backoffMs, sleep } from './backoff.ts'
export type { CallContext, Clock, TraceParent } from './call-context.ts'
export {
  type CallScope,
  isTimeOver,
  monotonicNs,
  openCallScope,
  remainingMs,
  systemClock,
} from './call-scope.ts'
export { loadConfig, renderSettingTable } from './config.ts'
export { PROCESS_FLAGS, toDrainMs, toLogSettings } from './executable/process-flags.ts'
export { ErrorResult, reportFailure, reportProblem } from './executable/report-failure.ts'
export {
  type Executable,
  type ProcessEnvironment,
  processEnvironment,
  runExecutable,
  type StartOptions,
} from './executable/run-executable.ts'
export { loadTracingSettings, TracingSettings } from './executable/tracing-settings.ts'
export { renderFlagTable, renderHelp } from './flag-help.ts'
export { type FlagSpec, type FlagTable, type FlagValues, withDashes } from './flag-spec.ts'
export { flagRefusal, parseFlags, readPairs } from './flags.ts'
export { type FollowedFiles, followFiles, readFiles } from './follow-files.ts'
export { createHealth, type Health, withCauses } from './health.ts'
export { type Running, type StopSignal } from './lifecycle.ts'
export { type BudgetKey, exceptDetails, limitLog, ofEachModel } from './limit-log.ts'
export { LineBudget } from './line-budget.ts'
export { LineSplitter } from './line-splitter.ts'
export { createLogger, type LogFields, type Logger, silentLogger } from './log.ts'
export { logServing } from './log-serving.ts'
export {
  type ChangeableLogSettings,
  type LogSettings,
  settingsOfLevel,
} from './log-settings.ts'
export { LoopTurns } from './loop-turns.ts'
export {
  type CounterMetric,
  createMetrics,
  type GaugeMetric,
  type HistogramMetric,
  type Metrics,
} from './metrics.ts'
export { createTracing } from './otlp-tracing.ts'
export { parseCertificates, parsePrivateKey } from './pem.ts'
export { printable } from './printable.ts'
export { createProbeServer, PROBE_CONNECTIONS } from './probe-server.ts'
export { renderJson, renderJsonLine } from './render-json.ts'
export { repeat } from './repeat.ts'
export { FORMAT_FLAG, type ResultFormat, readResultFormat } from './result-format.ts'
export { Secret } from './secret.ts'
export { showElapsed } from './show-elapsed.ts'
export { raceSignal, signalError } from './signal-error.ts'
export { StatusLine } from './status-line.ts'
export type { Screen, ScreenOptions, Terminal } from './terminal.ts'
export {
  LOGGED_ID_CHARACTERS,
  parseTraceParent,
  requestFields,
  sampledTraceId,
} from './trace-parent.ts'
export { type Span, type Tracing } from './tracing.ts'
export { type OpenTransfer, type Transfer, TransferProgress } from './transfer-progress.ts'
