import {
  type Clock,
  type FlagValues,
  type Logger,
  openTracing,
  type PROCESS_FLAGS,
  systemClock,
  type Tracing,
  type TracingSettings,
} from '@tutti/chassis'
import { type CACHE_FLAGS, openCache, type ResponseCache } from '@tutti/response-cache'
import { type METRICS_FLAGS, readMetricsFlags, ServerMetrics } from '@tutti/telemetry'
import type { SERVER_FLAGS } from './server-flags.ts'

/** The flags of every process that serves requests. */
export type ServingFlags = FlagValues<
  typeof SERVER_FLAGS & typeof METRICS_FLAGS & typeof CACHE_FLAGS & typeof PROCESS_FLAGS
>

/** The options of a process that all its parts need. */
export interface ProcessBaseOptions {
  readonly flags: ServingFlags
  readonly settings: TracingSettings
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  readonly log: Logger
  /** The system's if absent. */
  readonly clock?: Clock | undefined
  /** See ServerMetricsOptions. */
  readonly pinnedPoolBytes?: number | undefined
}

/** The parts that everything in a process shares, whatever it serves. */
export interface ProcessBase {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Logger
  readonly clock: Clock
  readonly metrics: ServerMetrics
  readonly tracing: Tracing
  readonly cache: ResponseCache | undefined
  /** Closes what the parts have opened, the last first. */
  readonly opened: AsyncDisposableStack
  /** Aborts when the process begins to stop: nothing follows changes from then on. */
  readonly stopping: AbortSignal
}

/**
 * Opens the parts that everything in a process shares: tracing, metrics and response cache.
 *
 * @param shared.opened - closes the parts.
 * @throws ServeError if the flags of metrics or cache do not fit, or Redis refuses.
 */
export async function openProcessBase(
  o: ProcessBaseOptions,
  { opened, stopping }: Pick<ProcessBase, 'opened' | 'stopping'>,
): Promise<ProcessBase> {
  const { flags, settings, env = {}, log, clock = systemClock, pinnedPoolBytes } = o
  const tracing = opened.adopt(await openTracing({ ...settings, log }), (one) => one.shutdown())
  const metrics = new ServerMetrics({ latencies: readMetricsFlags(flags), pinnedPoolBytes, log })
  const cache = await openCache(flags, { clock, metrics, log, env, opened })
  return { env, log, clock, metrics, tracing, cache, opened, stopping }
}
