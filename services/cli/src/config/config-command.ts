import { createEngines, type Devices } from '@tutti/backends'
import { type FlagTable, flagRefusal, renderJson, silentLogger } from '@tutti/chassis'
import { withFlags } from '@tutti/command-line/command'
import { ServeError } from '@tutti/errors'
import {
  jsonConfigSchema,
  type ModelConfig,
  printModelConfig,
  toJsonConfig,
} from '@tutti/model-config'
import { type RepositoryModel, scanRepositories } from '@tutti/repository'
import { readEnsembles } from '@tutti/router'
import { completeConfigOf, openDevices, readBackendConfig, requireDevices } from '@tutti/step'
import { z } from 'zod'
import { refusingUnreadable } from '../manifests/repository-configs.ts'
import { SERVE_FLAGS } from '../serve/serve-flags.ts'

const CONFIG_FLAGS = {
  'model-repository': SERVE_FLAGS['model-repository'],
  'disable-auto-complete-config': SERVE_FLAGS['disable-auto-complete-config'],
  'model-config-name': SERVE_FLAGS['model-config-name'],
  'backend-config': SERVE_FLAGS['backend-config'],
  'backend-directory': SERVE_FLAGS['backend-directory'],
  accelerator: SERVE_FLAGS.accelerator,
  format: {
    type: 'enum',
    values: ['pbtxt', 'json'],
    aliases: ['output'],
    default: 'pbtxt',
    description: 'Format of the output: config.pbtxt, or the JSON of the /config endpoint.',
  },
} as const satisfies FlagTable

export const configCommand = withFlags(
  {
    usage: 'tutti config MODEL --model-repository DIR [FLAGS]',
    flags: CONFIG_FLAGS,
    result: z.unknown().meta({
      title: 'Configuration of a model, as tutti config prints it',
      ...jsonConfigSchema(),
    }),
  },
  async ({ flags, positionals }, environment) => {
    const [name, ...more] = positionals
    if (name === undefined || more.length > 0) {
      throw new ServeError('FLAG_INVALID', `got ${positionals.length} model names, want one`)
    }
    const configName = flags['model-config-name']
    const repositories = flags['model-repository']
    if (repositories.length === 0 || repositories.includes('')) {
      throw flagRefusal('--model-repository', 'got none, want at least one folder')
    }
    const models = await refusingUnreadable(() =>
      scanRepositories(repositories, configName === undefined ? {} : { configName }),
    )
    const config = await completeConfig(findModel(models, name), {
      autoComplete: !flags['disable-auto-complete-config'],
      devices: openDevices(flags.accelerator, environment.env),
      backendDirectory: flags['backend-directory'],
      ...readBackendConfig(flags['backend-config']),
    })
    environment.out(
      flags.format === 'json' ? renderJson(toJsonConfig(config)) : printModelConfig(config),
    )
    return 0
  },
)

function findModel(models: readonly RepositoryModel[], name: string): RepositoryModel {
  const model = models.find((known) => known.name === name)
  if (model !== undefined) return model
  const names = models.map((known) => known.name).join(', ')
  throw new ServeError(
    'MODEL_NOT_FOUND',
    `no model '${name}'; the repositories hold ${names || 'none'}`,
  )
}

/** Completes a configuration by the steps that serving takes, short of loading. */
async function completeConfig(
  model: RepositoryModel,
  o: {
    readonly autoComplete: boolean
    readonly devices: Devices
    readonly backendDirectory: string
  } & ReturnType<typeof readBackendConfig>,
): Promise<ModelConfig> {
  const { settings, backendDirectory } = o
  const engines = createEngines({ log: silentLogger, settings, backendDirectory })
  const config = await completeConfigOf(model, { ...o, engines })
  if (config !== undefined) {
    await requireDevices(config, await engines.get(config.backend), o.devices)
    return config
  }
  const [ensemble] = await readEnsembles([model])
  if (ensemble?.definition === undefined) {
    throw new ServeError('CONFIG_INVALID', ensemble?.reason ?? `'${model.name}' is no ensemble`)
  }
  return ensemble.definition.config
}
