import { type LoadedModel, type ModelHost, selectEngine } from '@tutti/backends'
import {
  compileRequestCheck,
  isDecoupled,
  type ModelConfig,
  type ModelVersionSource,
  plainName,
  printModelConfig,
} from '@tutti/model-config'
import { digestVersion, versionDirectory } from '@tutti/repository'
import { StatisticsRecorder } from '@tutti/telemetry'
import { DeclaredOutputs } from '../execution/declared-outputs.ts'
import type { ScheduledRequest } from '../execution/execution.ts'
import type { ExecutionContext } from '../execution/execution-context.ts'
import { ResponseOrder } from '../execution/response-order.ts'
import { Instances, Scheduler } from '../execution/scheduler.ts'
import type { SchedulerDependencies } from '../execution/scheduler-parts.ts'
import { LimitedInstances, limitChoice, limitedInstances } from '../limiter/limited-instances.ts'
import type { InstanceLimits } from '../limiter/rate-limiter.ts'
import { StepEvents } from '../log-events.ts'
import { namespacedHost } from '../model-host.ts'
import { AutoDelay } from '../queue/auto-delay.ts'
import { compileQueueRules } from '../queue/queue-rules.ts'
import { RequestQueue } from '../queue/request-queue.ts'
import { buildSequences, openSequences, type Sequences } from '../sequence/build-sequences.ts'
import type { StepSettings } from '../step-options.ts'
import { cacheResponses, isCached } from './cached-scheduler.ts'
import { closeServing, type Serving } from './hosted-model.ts'
import { requireDevices } from './instance-devices.ts'
import type { PreparedVersion } from './prepare-model.ts'
import {
  countInstances,
  countSlots,
  requireShareable,
  requireSupported,
} from './supported-settings.ts'
import { warmUp } from './warm-up.ts'

export interface VersionLoadOptions extends StepSettings {
  /** Services of the server that the models may call. */
  readonly host: ModelHost
}

/**
 * Loads one version and warms up each of its instances.
 *
 * @throws ServeError with Triton's text; nothing stays loaded then.
 */
export async function loadVersion(
  prepared: PreparedVersion,
  version: number,
  o: VersionLoadOptions & { readonly signal: AbortSignal },
): Promise<{ readonly revision: string; readonly serving: Serving }> {
  const { config, model } = prepared
  const { name, directory: modelDirectory } = model
  const { backend } = config
  const host = namespacedHost(o.host, name, o.resolveFrom)
  const startedAt = o.clock.now()
  await requireDevices(config, await o.engines.get(backend), o.devices)
  requireSupported(config)
  const engine = await selectEngine(o.engines, backend, name)
  const sharesInterpreter = o.sharedInterpreters?.has(plainName(name)) === true
  if (sharesInterpreter) requireShareable(config, engine)
  const revision = await digestVersion(model, version, printModelConfig(config))
  const source: ModelVersionSource = {
    name,
    version,
    modelDirectory,
    versionDirectory: versionDirectory(model, version),
    revision,
    config,
  }
  const instances = countInstances(config)
  const sequences = await openSequences(config, modelDirectory)
  const limits = o.limiter?.register(name, limitedInstances(config))
  let loaded: LoadedModel | undefined
  try {
    const restartMs = o.loadLimits?.get(plainName(name))
    const { signal } = o
    const restart = restartMs !== undefined && { restartMs }
    loaded = await engine.load(source, { instances, host, sharesInterpreter, signal, ...restart })
    // Most engines cannot be interrupted.
    signal.throwIfAborted()
    const check = sequences?.check ?? compileRequestCheck(config)
    const events = new StepEvents(o.log)
    await warmUp(loaded, {
      config,
      instances,
      check: sequences?.warmUpCheck ?? check,
      modelDirectory,
      random: Math.random,
      warnOfInputs: (sample, inputs) => events.warmUpInputsUnknown(name, sample, inputs),
    })
    const hasCache = isCached(config, o.cache)
    const recorded = { name, version: String(version), hasCache, clock: o.clock }
    const statistics = new StatisticsRecorder(recorded)
    const parts = { loaded, config, version, instances, statistics, settings: o, sequences, limits }
    const scheduler = buildScheduler(parts)
    const cached = cacheResponses(scheduler, { ...parts, revision })
    const slots = countSlots(config)
    const loadSeconds = (o.clock.now() - startedAt) / 1000
    const directories = [source.versionDirectory, modelDirectory]
    const own = { loaded, statistics, limits, slots, directories, loadSeconds }
    return { revision, serving: { ...own, check, scheduler, cached } }
  } catch (error) {
    // The first failure is the one that is told.
    await closeServing({ loaded, limits }).catch(() => {})
    throw error
  }
}

/** Builds the scheduler that a loaded version's configuration asks for: its queue, batching, order, and rules for outputs. */
export function buildScheduler(o: SchedulerOptions): Scheduler {
  const scheduler = new Scheduler(chooseParts(o))
  o.limits?.onTurn(() => scheduler.pump())
  return scheduler
}

interface SchedulerOptions {
  readonly loaded: LoadedModel
  readonly config: ModelConfig
  readonly version: number
  readonly instances: number
  readonly statistics: StatisticsRecorder
  /** Sequences of a model with `sequence_batching`. */
  readonly sequences?: Sequences | undefined
  /** Limits of the instances; absent without a rate limiter. */
  readonly limits?: InstanceLimits | undefined
  readonly settings: Pick<
    StepSettings,
    'replica' | 'maxQueuedRequests' | 'autoDelays' | 'clock' | 'log' | 'metrics'
  >
}

function chooseParts(o: SchedulerOptions): SchedulerDependencies<ScheduledRequest> {
  const { config, loaded, instances, limits } = o
  const { maxQueuedRequests } = o.settings
  const context = buildContext(o)
  if (o.sequences !== undefined) {
    const parts = buildSequences(o.sequences, { config, loaded, instances, maxQueuedRequests })
    return { ...parts, context, ...(limits && { instances: limitChoice(parts.instances, limits) }) }
  }
  const { autoDelay: delay } = context
  const queue = new RequestQueue<ScheduledRequest>(
    compileQueueRules(config, maxQueuedRequests),
    delay && { delay, deadlineOf: ({ deadlineAt }) => deadlineAt },
  )
  if (limits !== undefined) {
    const limited = { count: instances, limits, hasWork: () => queue.length > 0 }
    return { model: loaded, queue, instances: new LimitedInstances(limited), context }
  }
  // A dynamic batcher cannot put requests that it gives away early into a larger batch.
  const open = config.dynamic_batching === undefined ? (loaded.openExecutions ?? 1) : 1
  return { model: loaded, queue, instances: new Instances(instances, open), context }
}

function buildContext(o: Omit<SchedulerOptions, 'sequences' | 'limits'>): ExecutionContext {
  const { config, version, statistics } = o
  const { clock, log, replica, metrics } = o.settings
  const { dynamic_batching: dynamic, sequence_batching: sequence } = config
  const events = new StepEvents(log).forVersion(statistics.name, version)
  const isOrdered = dynamic?.preserve_ordering ?? sequence?.oldest?.preserve_ordering ?? false
  return {
    clock,
    statistics,
    observer: metrics?.observerOf(statistics) ?? statistics,
    model: { name: statistics.name, version, isEnsemble: false },
    events,
    config,
    outputs: new DeclaredOutputs(config, events.outputDiffers),
    hasReshape: config.output.some(({ reshape }) => reshape !== undefined),
    isDecoupled: isDecoupled(config),
    ...(isOrdered && { order: new ResponseOrder() }),
    ...(isAutoDelayed(o) && { autoDelay: new AutoDelay() }),
    details: { model: statistics.name, version: String(version), replica },
  }
}

/** Tells whether the delay is automatic. A delay in the configuration, such as that of a load request, overrides it. */
function isAutoDelayed({
  config,
  statistics,
  settings,
}: Pick<SchedulerOptions, 'config' | 'statistics' | 'settings'>): boolean {
  if (config.dynamic_batching?.max_queue_delay_microseconds !== 0) return false
  return settings.autoDelays?.has(plainName(statistics.name)) === true
}
