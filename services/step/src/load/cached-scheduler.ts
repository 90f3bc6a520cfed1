import { randomUUID } from 'node:crypto'
import type { ModelConfig } from '@tutti/model-config'
import { executeCached, isKeyedByTurns, type ResponseCache } from '@tutti/response-cache'
import type { StatisticsRecorder } from '@tutti/telemetry'
import type { Scheduler } from '../execution/scheduler.ts'
import type { StepSettings } from '../step-options.ts'

export interface CachedScheduler extends Pick<Scheduler, 'execute'> {
  /** Waits until no request waits for the cache: each was answered, or went on to the scheduler. */
  settled(): Promise<unknown>
}

/** Tells whether the responses of a model are cached. @param cache - absent if the process has none. */
export function isCached({ response_cache: own }: ModelConfig, cache: object | undefined): boolean {
  return cache !== undefined && own?.enable === true
}

/**
 * Answers requests to a model version from the cache, before they reach its scheduler.
 *
 * @returns undefined unless there is a cache and the model's `response_cache` enables it.
 */
export function cacheResponses(
  scheduler: Scheduler,
  o: {
    readonly config: ModelConfig
    readonly version: number
    readonly revision: string
    readonly statistics: StatisticsRecorder
    readonly settings: Pick<StepSettings, 'cache' | 'clock' | 'metrics'>
  },
): CachedScheduler | undefined {
  const { config, statistics, settings } = o
  const { cache, clock, metrics } = settings
  if (cache === undefined || !isCached(config, cache)) return undefined
  const observer = metrics?.cacheObserverOf(statistics) ?? statistics.cache
  const identity = JSON.stringify([
    config.name,
    o.version,
    o.revision,
    // The same files may answer in another way once they are loaded again, if their code reads anything else. What is shared
    // between processes is for models that do not.
    cache.isShared ? '' : randomUUID(),
  ])
  const outputs = config.output.map(({ name }) => name)
  const mustExecute = executesInOrder(config, cache, scheduler)
  const common = { cache, identity, outputs, observer, clock }
  const waiting = new Set<Promise<void>>()
  return {
    execute: (request, sink, options) => {
      if (mustExecute(request)) return scheduler.execute(request, sink, options)
      const execute = (to: typeof sink): void => scheduler.execute(request, to, options)
      const { signal } = options
      const passed = executeCached({ ...common, request, sink, signal, execute })
      if (passed !== undefined) {
        waiting.add(passed)
        void passed.then(() => waiting.delete(passed))
      }
    },
    settled: () => Promise.all(waiting),
  }
}

/**
 * Makes the check whether a request must execute, whether the cache has its response or not. With `preserve_ordering` no request
 * may overtake another. So a cache of this process answers only while nothing executes, and no request whose key takes several
 * turns. A cache elsewhere answers none.
 */
function executesInOrder(
  config: ModelConfig,
  cache: ResponseCache,
  scheduler: Pick<Scheduler, 'load'>,
): (request: Parameters<Scheduler['execute']>[0]) => boolean {
  if (config.dynamic_batching?.preserve_ordering !== true) return () => false
  return (request) => cache.isShared || scheduler.load.inFlight > 0 || isKeyedByTurns(request)
}
