export { backoffMs, sleep } from './calls/backoff.ts'
export type { CallContext, Clock, TraceParent } from './calls/call-context.ts'
export {
  type CallScope,
  isTimeOver,
  monotonicNs,
  openCallScope,
  remainingMs,
  systemClock,
} from './calls/call-scope.ts'
export { LoopTurns } from './calls/loop-turns.ts'
export { repeat } from './calls/repeat.ts'
export { raceSignal, signalError } from './calls/signal-error.ts'
export { type ProcessEnvironment, processEnvironment } from './executable/process-environment.ts'
export { PROCESS_FLAGS, toDrainMs, toLogSettings } from './executable/process-flags.ts'
export { obeyProxies } from './executable/proxies.ts'
export { ErrorResult, reportFailure, reportProblem } from './executable/report-failure.ts'
export { type Executable, runExecutable, type StartOptions } from './executable/run-executable.ts'
export { loadTracingSettings, TracingSettings } from './executable/tracing-settings.ts'
export { type FollowedFiles, followFiles, readFiles } from './files/follow-files.ts'
export { parseCertificates, parsePrivateKey } from './files/pem.ts'
export { SecretText } from './files/secret.ts'
export { type OpenTransfer, type Transfer, TransferProgress } from './files/transfer-progress.ts'
export { loadConfig, renderSettingTable } from './flags/config.ts'
export { renderFlagTable, renderHelp } from './flags/flag-help.ts'
export { type FlagSpec, type FlagTable, type FlagValues, withDashes } from './flags/flag-spec.ts'
export { flagRefusal, parseFlags, readPairs } from './flags/flags.ts'
export { FORMAT_FLAG, type ResultFormat, readResultFormat } from './flags/result-format.ts'
export { type BudgetKey, exceptDetails, limitLog, ofEachModel } from './log/limit-log.ts'
export { LineBudget } from './log/line-budget.ts'
export { createLogger, type LogFields, type Logger, silentLogger } from './log/log.ts'
export { logServing } from './log/log-serving.ts'
export {
  type ChangeableLogSettings,
  type LogSettings,
  settingsOfLevel,
} from './log/log-settings.ts'
export {
  type CounterMetric,
  createMetrics,
  type GaugeMetric,
  type HistogramMetric,
  type Metrics,
} from './metrics.ts'
export { ALL_ADDRESSES, hostPort, listenAt } from './process/addresses.ts'
export { createHealth, type Health, withCauses } from './process/health.ts'
export { type Running, type StopSignal } from './process/lifecycle.ts'
export { createProbeServer, PROBE_CONNECTIONS } from './process/probe-server.ts'
export { showElapsed } from './terminal/show-elapsed.ts'
export { StatusLine } from './terminal/status-line.ts'
export type { Screen, ScreenOptions, Terminal } from './terminal/terminal.ts'
export { errorText } from './text/describe-error.ts'
export { LineSplitter } from './text/line-splitter.ts'
export { printable } from './text/printable.ts'
export { renderJson, renderJsonLine } from './text/render-json.ts'
export { openTracing } from './tracing/open-tracing.ts'
export {
  LOGGED_ID_CHARACTERS,
  parseTraceParent,
  requestFields,
  sampledTraceId,
} from './tracing/trace-parent.ts'
export { passiveTracing, type Span, type SpanAttributes, type Tracing } from './tracing/tracing.ts'
