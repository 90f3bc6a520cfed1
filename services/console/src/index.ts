export type { UnreadyResource } from './api/cluster.ts'
export type { Counts } from './api/counts.ts'
export { parseSteps, type RecordedSteps, SpanCounts, type ToldSteps } from './api/step-span.ts'
export { CONSOLE_FLAGS, checkConsoleFlags } from './console-flags.ts'
export type {
  ClusterSource,
  ConsoleModel,
  ConsoleReplica,
  ConsoleSource,
  OtherRouter,
  ReplicaTotals,
  ReplicaVersion,
  WaitOptions,
} from './console-source.ts'
export { openConsole } from './open-console.ts'
export { countRates, formatMs, formatRate, type Rates } from './page/rates.ts'
export {
  type RequestTimes,
  requestTimes,
  type WaterfallRow,
  waterfallRows,
} from './waterfall/waterfall-rows.ts'
