import type { PinnedVersion } from '@tutti/api'
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
import { DeviceWatch } from '../execution/device-watch.ts'
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
import { mayUseDevices, requireDevices } from './instance-devices.ts'
import type { PreparedVersion } from './prepare-model.ts'
import {
  countInstances,
  countSlots,
  requireShareable,
  requireSupported,
} from './supported-settings.ts'
import { executeOnce, trialRequest, type WarmUpOptions, warmUp } from './warm-up.ts'

export interface VersionLoadOptions extends StepSettings {
  /** Services of the server that the models may call. */
  readonly host: ModelHost
  /** Called when the process can execute a revision no longer. */
  readonly lost: (pin: PinnedVersion, problem: string) => void
}

interface OneLoadOptions extends VersionLoadOptions {
  readonly signal: AbortSignal
  /** Called with what the load waits for from now on. */
  readonly report: (doing: string) => void
}

/**
 * Loads one version and warms up each of its instances.
 *
 * @throws ServeError with Triton's text; nothing stays loaded then.
 */
export async function loadVersion(
  prepared: PreparedVersion,
  version: number,
  o: OneLoadOptions,
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
    o.report(`engine ${engine.backend}`)
    const options = { instances, host, sharesInterpreter, ...toLimits(o, name) }
    loaded = await engine.load(source, options)
    // Most engines cannot be interrupted.
    o.signal.throwIfAborted()
    const check = sequences?.check ?? compileRequestCheck(config)
    const deviceWatch = await startUse(loaded, {
      source,
      instances,
      check: sequences?.warmUpCheck ?? check,
      settings: o,
    })
    const hasCache = isCached(config, o.cache)
    const recorded = { name, version: String(version), hasCache, clock: o.clock }
    const statistics = new StatisticsRecorder(recorded)
    const parts = { loaded, config, version, instances, statistics, settings: o, sequences, limits }
    const scheduler = buildScheduler({ ...parts, deviceWatch })
    const cached = cacheResponses(scheduler, { ...parts, revision })
    const slots = countSlots(config)
    const loadSeconds = (o.clock.now() - startedAt) / 1000
    const directories = [source.versionDirectory, modelDirectory]
    const own = { loaded, statistics, limits, deviceWatch, slots, directories, loadSeconds }
    return { revision, serving: { ...own, check, scheduler, cached } }
  } catch (error) {
    // The first failure is the one that is told.
    await closeServing({ loaded, limits }).catch(() => {})
    throw error
  }
}

/** Warms a version up, and opens the watch for faults of the devices that it executes on; undefined if it executes on none. */
async function startUse(
  loaded: LoadedModel,
  o: Pick<WarmUpOptions, 'check' | 'instances'> & {
    readonly source: ModelVersionSource
    readonly settings: OneLoadOptions
  },
): Promise<DeviceWatch | undefined> {
  const { source, settings, check, instances } = o
  const { name: model, version, revision, config, modelDirectory } = source
  const events = new StepEvents(settings.log)
  const warmingUp: WarmUpOptions = {
    config,
    instances,
    check,
    modelDirectory,
    random: Math.random,
    report: settings.report,
    warnOfInputs: (sample, inputs) => events.warmUpInputsUnknown(model, sample, inputs),
  }
  await warmUp(loaded, warmingUp)
  if (!mayUseDevices(config, settings.devices)) return undefined
  const lines = events.forVersion(model, version)
  return new DeviceWatch({
    loaded,
    events: lines,
    clock: settings.clock,
    tryOut: async (instance) => {
      const request = await trialRequest(warmingUp)
      if (request === undefined) return undefined
      await executeOnce(loaded, { request, instance })
      return 'worked'
    },
    lost: (problem) => {
      lines.modelLost(problem)
      settings.lost({ model, version, revision }, problem)
    },
  })
}

function toLimits({ loadLimits, signal, report }: OneLoadOptions, name: string) {
  const restartMs = loadLimits?.get(plainName(name))
  return { signal, report, ...(restartMs !== undefined && { restartMs }) }
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
  readonly deviceWatch?: Pick<DeviceWatch, 'executed'> | undefined
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
  const { config, version, statistics, deviceWatch } = o
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
    deviceWatch,
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
