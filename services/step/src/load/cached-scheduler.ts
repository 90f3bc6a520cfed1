import { randomUUID } from 'node:crypto'
import type { ModelConfig } from '@tutti/model-config'
import { CacheStatistics, executeCached, type StatisticsRecorder } from '@tutti/server'
import type { Scheduler } from '../execution/scheduler.ts'
import type { StepSettings } from '../step-options.ts'

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
    readonly settings: Pick<StepSettings, 'cache' | 'clock'>
  },
): Pick<Scheduler, 'execute'> | undefined {
  const { config, statistics, settings } = o
  const { cache, clock } = settings
  if (cache === undefined || config.response_cache?.enable !== true) return undefined
  statistics.cache = new CacheStatistics()
  const identity = JSON.stringify([
    config.name,
    o.version,
    o.revision,
    // The same files may answer in another way once they are loaded again, if their code reads anything else.
    randomUUID(),
  ])
  const outputs = config.output.map(({ name }) => name)
  const mustExecute = executesInOrder(config, scheduler)
  const common = { cache, identity, outputs, statistics: statistics.cache, clock }
  return {
    execute: (request, sink, options) => {
      if (mustExecute()) return scheduler.execute(request, sink, options)
      const execute = (to: typeof sink): void => scheduler.execute(request, to, options)
      executeCached({ ...common, request, sink, execute })
    },
  }
}

/** With `preserve_ordering` nothing may overtake: the cache answers only while nothing is executed. */
function executesInOrder(config: ModelConfig, scheduler: Pick<Scheduler, 'load'>): () => boolean {
  if (config.dynamic_batching?.preserve_ordering !== true) return () => false
  return () => scheduler.load.inFlight > 0
}
