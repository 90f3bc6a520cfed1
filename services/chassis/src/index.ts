export { type BackoffOptions, backoffMs, sleep } from './backoff.ts'
export type { CallContext, TraceParent } from './call-context.ts'
export {
  type CallScope,
  type CallScopeOptions,
  isTimeOver,
  openCallScope,
  raceSignal,
  remainingMs,
  signalError,
} from './call-scope.ts'
export { type Clock, systemClock } from './clock.ts'
export {
  describeSettings,
  loadConfig,
  renderSettingTable,
  type SettingMeta,
  type SettingRow,
  type SettingSchema,
  secretSetting,
} from './config.ts'
export { describeError, type ErrorDescription } from './describe-error.ts'
export {
  PROCESS_FLAGS,
  type ProcessFlags,
  toDrainMs,
  toLogLevel,
} from './executable/process-flags.ts'
export {
  type Executable,
  reportFailure,
  runExecutable,
  type StartOptions,
  type Surroundings,
} from './executable/run-executable.ts'
export {
  loadTracingSettings,
  TracingSettings,
  toTracingOptions,
} from './executable/tracing-settings.ts'
export { describeFlags, type FlagRow, renderFlagTable, renderHelp } from './flag-help.ts'
export type {
  BoolFlag,
  EnumFlag,
  FlagSpec,
  FlagTable,
  FlagValue,
  FlagValues,
  IntFlag,
  ListFlag,
  StringFlag,
} from './flag-spec.ts'
export { type ParsedFlags, parseFlags } from './flags.ts'
export { createHealth, type Health, withCauses } from './health.ts'
export { leave } from './leave.ts'
export {
  type LifecycleOptions,
  processSignals,
  type Running,
  runUntilSignal,
  type SignalSource,
  type StopSignal,
} from './lifecycle.ts'
export { limitLog } from './limit-log.ts'
export { LineBudget } from './line-budget.ts'
export { LineSplitter } from './line-splitter.ts'
export {
  createLogger,
  type LogFields,
  type Logger,
  type LoggerOptions,
  type LogLevel,
  silentLogger,
} from './log.ts'
export { LIFECYCLE_EVENTS } from './log-events.ts'
export { logServing, type ServingOptions } from './log-serving.ts'
export {
  type CounterMetric,
  createMetrics,
  type GaugeMetric,
  type HistogramMetric,
  type Labels,
  type MetricOptions,
  type MetricReading,
  type Metrics,
} from './metrics.ts'
export { createTracing, type TracingOptions } from './otlp-tracing.ts'
export { Secret } from './secret.ts'
export { renderTable } from './table.ts'
export { parseTraceParent, type TraceParentParts } from './trace-parent.ts'
export {
  passiveTracing,
  type Span,
  type SpanAttributes,
  type SpanKind,
  type SpanOptions,
  type Tracing,
} from './tracing.ts'
