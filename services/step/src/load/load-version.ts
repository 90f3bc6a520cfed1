import { type LoadedModel, type ModelHost, selectEngine } from '@tutti/backends'
import { compileRequestCheck, type ModelVersionSource, printModelConfig } from '@tutti/model-config'
import { digestVersion, versionDirectory } from '@tutti/repository'
import { StatisticsRecorder } from '@tutti/server'
import type { Serving } from '../hosted-model.ts'
import type { StepSettings } from '../step-options.ts'
import { buildScheduler, type SchedulerSettings } from './build-scheduler.ts'
import { countInstances, countSlots } from './instance-count.ts'
import { requireDevices } from './instance-devices.ts'
import type { PreparedModel } from './prepare-model.ts'
import { requireSupported } from './supported-settings.ts'
import { warmUp } from './warm-up.ts'

export interface VersionLoadOptions extends StepSettings, SchedulerSettings {
  /** What the models may ask of the server. */
  readonly host: ModelHost
}

/** One load. */
export interface LoadContext {
  /** Aborts when nobody wants the model any more. */
  readonly signal: AbortSignal
}

export interface LoadedVersion {
  readonly revision: string
  readonly serving: Serving
}

/**
 * Loads one version and warms up each of its instances.
 *
 * @throws ServeError with Triton's text; nothing stays loaded then.
 */
export async function loadVersion(
  prepared: PreparedModel,
  version: number,
  o: VersionLoadOptions & LoadContext,
): Promise<LoadedVersion> {
  const { config, model } = prepared
  const startedAt = o.clock.now()
  await requireDevices(config, o.engines.get(config.backend), o.devices)
  requireSupported(config)
  const engine = selectEngine(o.engines, config.backend, config.name)
  const revision = await digestVersion(model, version, printModelConfig(config))
  const source: ModelVersionSource = {
    name: config.name,
    version,
    modelDirectory: model.directory,
    versionDirectory: versionDirectory(model, version),
    revision,
    config,
  }
  const instances = countInstances(config)
  const loaded = await engine.load(source, { instances, host: o.host, signal: o.signal })
  try {
    const ready = await begin(loaded, source, instances, o)
    const loadSeconds = (o.clock.now() - startedAt) / 1000
    return { revision, serving: { ...ready, loadSeconds } }
  } catch (error) {
    await loaded.close()
    throw error
  }
}

async function begin(
  loaded: LoadedModel,
  source: ModelVersionSource,
  instances: number,
  o: VersionLoadOptions,
): Promise<Omit<Serving, 'loadSeconds'>> {
  const { config, version, modelDirectory } = source
  const check = compileRequestCheck(config)
  await warmUp(loaded, { config, instances, check, modelDirectory, random: Math.random })
  const statistics = new StatisticsRecorder({
    name: config.name,
    version: String(version),
    clock: o.clock,
  })
  const scheduler = buildScheduler({ loaded, config, version, instances, statistics, settings: o })
  return { loaded, check, statistics, scheduler, slots: countSlots(config) }
}
