import type { Clock, Logger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { type ModelConfig, parseJsonConfig, toJsonConfig } from '@tutti/model-config'
import { ModelMetrics } from '../model-metrics.ts'
import { badFrame } from './frames.ts'
import { HostQuestions } from './host-questions.ts'
import { InstanceProcess } from './instance-process.ts'
import { ProcessOutput } from './process-output.ts'
import type { PythonSettings } from './python-settings.ts'
import type { Zygote } from './zygote.ts'

/**
 * Runs a model's `auto_complete_config` in a process of its own, which has not initialized the model.
 *
 * @returns the same configuration if the model completes nothing.
 * @throws ServeError MODEL_LOAD_FAILED with the text of its exception; CONFIG_SYNTAX if it made no configuration.
 */
export async function completeConfig(o: {
  readonly config: ModelConfig
  readonly version: number
  /** The model's file. */
  readonly file: string
  readonly zygote: Zygote
  readonly settings: PythonSettings
  readonly clock: Clock
  readonly log: Logger
}): Promise<ModelConfig> {
  const { config, clock, settings } = o
  const version = String(o.version)
  const name = `${config.name}_autocomplete`
  const origin = { model: config.name, version, instance: name }
  const now = (): number => clock.now()
  const questions = new HostQuestions({
    host: undefined,
    // They end with the process, so no scrape ever sees them.
    metrics: new ModelMetrics().open(),
    log: o.log,
    origin,
    now,
  })
  const process: InstanceProcess = await InstanceProcess.fork({
    zygote: o.zygote,
    output: new ProcessOutput(o.log, origin, now),
    memory: undefined,
    arenaBytes: settings.arenaBytes,
    task: {
      task: 'complete',
      name: config.name,
      version,
      file: o.file,
      config: JSON.stringify(toJsonConfig(config)),
    },
    name,
    receiver: {
      onFrame: (frame) => {
        if (!questions.take(frame, process)) throw badFrame(`operation ${frame.op}`)
      },
      onEnd: () => questions.close(),
    },
  })
  const stopTimer = clock.setTimer(settings.loadMs, () => {
    process.kill(`auto_complete_config took more than ${settings.loadMs / 1000} s`)
  })
  try {
    const { config: completed } = await process.ready()
    return toConfig(config, completed)
  } finally {
    stopTimer()
    process.kill('it has completed the configuration')
    await process.ended
  }
}

function toConfig(given: ModelConfig, completed: unknown): ModelConfig {
  if (completed === null) return given
  if (typeof completed !== 'string') throw badFrame('a configuration that is no text')
  try {
    return parseJsonConfig(JSON.parse(completed))
  } catch (error) {
    throw ServeError.from(error).withPrefix(`auto_complete_config of model '${given.name}': `)
  }
}
