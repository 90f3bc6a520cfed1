import type { LoadedModel } from '@tutti/backends'
import { isDecoupled, type ModelConfig } from '@tutti/model-config'
import type { StatisticsRecorder } from '@tutti/server'
import { ResponseOrder } from '../execution/response-order.ts'
import { Instances, Scheduler } from '../execution/scheduler.ts'
import { StepEvents } from '../log-events.ts'
import { compileBatchKey, compileQueueRules } from '../queue/queue-rules.ts'
import { RequestQueue } from '../queue/request-queue.ts'
import type { StepSettings } from '../step-options.ts'

/** The part of the settings that a scheduler takes from its step. */
export interface SchedulerSettings
  extends Pick<StepSettings, 'replica' | 'maxQueuedRequests' | 'clock' | 'log'> {
  /** Counts a result that came after its caller had left. */
  readonly dropped: () => void
}

/** Puts together what a loaded version's config asks for: queue, batching, order, output rules. */
export function buildScheduler(o: {
  readonly loaded: LoadedModel
  readonly config: ModelConfig
  readonly version: number
  readonly instances: number
  readonly statistics: StatisticsRecorder
  readonly settings: SchedulerSettings
}): Scheduler {
  const { config, version, settings } = o
  const events = new StepEvents(settings.log).forVersion(config.name, version)
  const preservesOrder = config.dynamic_batching?.preserve_ordering === true
  return new Scheduler({
    model: o.loaded,
    queue: new RequestQueue(compileQueueRules(config, settings.maxQueuedRequests)),
    batchKey: compileBatchKey(config),
    // What a dynamic batcher gives away early it cannot put into a larger batch.
    instances: new Instances(
      o.instances,
      config.dynamic_batching === undefined ? (o.loaded.openExecutions ?? 1) : 1,
    ),
    context: {
      clock: settings.clock,
      statistics: o.statistics,
      events,
      config,
      outputs: new Set(config.output.map(({ name }) => name)),
      hasReshape: config.output.some(({ reshape }) => reshape !== undefined),
      isDecoupled: isDecoupled(config),
      ...(preservesOrder && { order: new ResponseOrder() }),
      details: { model: config.name, version: String(version), replica: settings.replica },
      dropped: () => {
        events.resultDropped()
        settings.dropped()
      },
    },
  })
}
