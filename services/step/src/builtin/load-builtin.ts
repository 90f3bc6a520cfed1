import type { LoadedModel } from '@tutti/backends'
import { readStepText } from '@tutti/builtins'
import { ServeError } from '@tutti/errors'
import { compileRequestCheck } from '@tutti/model-config'
import { StatisticsRecorder } from '@tutti/telemetry'
import type { CheckedScheduler } from '../execution/scheduler.ts'
import { buildScheduler } from '../load/load-version.ts'
import { countInstances, countSlots } from '../load/supported-settings.ts'
import type { StepSettings } from '../step-options.ts'

/** A built-in in memory, with all that a request to it needs. */
export interface LoadedBuiltin extends CheckedScheduler {
  readonly loaded: LoadedModel
  /** Number of requests that can execute at the same time. */
  readonly slots: number
}

/** The settings of a step that its built-ins have too. */
export type BuiltinSettings = Pick<
  StepSettings,
  'engines' | 'replica' | 'maxQueuedRequests' | 'clock' | 'log'
>

export interface BuiltinLoadOptions extends BuiltinSettings {
  /** Folders of the files that options name, the first that has one counts. */
  readonly directories: readonly string[]
}

/**
 * Loads the built-in step of a text.
 *
 * @throws ServeError UNSUPPORTED for a step that this release does not know, MODEL_LOAD_FAILED for a file that does not fit.
 */
export async function loadBuiltin(text: string, o: BuiltinLoadOptions): Promise<LoadedBuiltin> {
  const config = readStepText(text)
  const engine = await o.engines.builtin?.()
  if (engine === undefined) throw new ServeError('UNSUPPORTED', 'this process has no built-ins')
  const { name } = config
  const [versionDirectory = '', modelDirectory = versionDirectory] = o.directories
  const version = 1
  const source = { name, version, modelDirectory, versionDirectory, revision: '', config }
  const instances = countInstances(config)
  const loaded = await engine.load(source, { instances })
  const statistics = new StatisticsRecorder({
    name,
    version: String(version),
    hasCache: false,
    clock: o.clock,
  })
  const { replica, maxQueuedRequests, clock, log } = o
  const settings = { replica, maxQueuedRequests, clock, log }
  const scheduler = buildScheduler({ loaded, config, version, instances, statistics, settings })
  return { check: compileRequestCheck(config), scheduler, loaded, slots: countSlots(config) }
}
