import { ServeError } from '@tutti/errors'
import {
  type ModelConfig,
  type ModelVersionSource,
  parseJsonConfig,
  toJsonConfig,
} from '@tutti/model-config'
import { CustomMetrics } from '../model-metrics.ts'
import { badFrame } from './frames.ts'
import { type SessionOptions, startSession } from './python-instance.ts'

/**
 * Runs a model's `auto_complete_config` in a process of its own, which has not initialized the model.
 *
 * @param module - file and package of the model's class.
 * @returns the same configuration if the model completes nothing.
 * @throws ServeError MODEL_LOAD_FAILED with the text of the model's exception; CONFIG_SYNTAX if the result is no configuration.
 */
export async function completeConfig(
  source: Pick<ModelVersionSource, 'config' | 'version'>,
  module: { readonly file: string; readonly package: string },
  o: Pick<SessionOptions, 'origin' | 'processes' | 'settings' | 'clock' | 'log'> & {
    readonly signal: AbortSignal | undefined
  },
): Promise<ModelConfig> {
  const { config } = source
  const version = String(source.version)
  const { signal, ...rest } = o
  const session = {
    ...rest,
    task: {
      task: 'complete',
      name: config.name,
      version,
      ...module,
      config: JSON.stringify(toJsonConfig(config)),
    },
    isDecoupled: false,
    memory: undefined,
    host: undefined,
    // They end with the process, so no scrape ever sees them.
    metrics: new CustomMetrics(),
    restartMs: undefined,
  }
  const [{ process }, answer] = await startSession(session, signal)
  process.kill('it has completed the configuration')
  await process.ended
  const { config: completed } = answer
  if (completed === null) return config
  if (typeof completed !== 'string') throw badFrame('a configuration that is no text')
  try {
    return parseJsonConfig(JSON.parse(completed))
  } catch (error) {
    throw ServeError.from(error).withPrefix(`auto_complete_config of model '${config.name}': `)
  }
}
