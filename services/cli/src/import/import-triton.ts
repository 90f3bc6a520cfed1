import { stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { type Manifest, resourceNames } from '@tutti/api'
import { ServeError } from '@tutti/errors'
import { fromModelConfig } from '@tutti/graph'
import {
  chooseVersions,
  emptyModelConfig,
  isEnsembleConfig,
  type ModelConfig,
  parseModelConfig,
  selectBackend,
} from '@tutti/model-config'
import { listVersionNames, type RepositoryModel, scanRepositories } from '@tutti/repository'

export interface ImportedRepository {
  /** Manifests of the models, in the order of the repository. */
  readonly manifests: readonly Manifest[]
  /** Problems of models that cannot be written as manifests, a line each. */
  readonly problems: readonly string[]
}

/**
 * Converts a model repository to manifests. Models that are served from the manifests have the same configurations, but for the
 * numbers of GPUs.
 *
 * @param o.prefix - beginning of storageUri, before the folder's name; default: hostPath:// and the path of the folder.
 * @param o.forCpu - true for machines without GPUs.
 * @throws ServeError REPOSITORY_UNREADABLE for the repository. A fault of one model is among `problems`.
 */
export async function importTriton(
  directory: string,
  { prefix, forCpu }: { readonly prefix?: string | undefined; readonly forCpu: boolean },
): Promise<ImportedRepository> {
  await checkRepository(directory)
  const models = await scanRepositories([directory])
  const configs = new Map<string, ModelConfig>()
  const problems: string[] = []
  const attempt = async ({ name }: RepositoryModel, run: () => void | Promise<void>) => {
    try {
      await run()
    } catch (error) {
      const { message } = ServeError.from(error)
      problems.push(message.includes(`'${name}'`) ? message : `model '${name}': ${message}`)
    }
  }
  for (const model of models) {
    await attempt(model, () => void configs.set(model.name, parseConfig(model)))
  }
  const isEnsemble = (name: string): boolean => {
    const config = configs.get(name)
    return config !== undefined && isEnsembleConfig(config)
  }
  const nameOf = resourceNames()
  const manifests: Manifest[] = []
  for (const model of models) {
    const config = configs.get(model.name)
    if (config === undefined) continue
    const folder = prefix === undefined ? undefined : `${prefix.replace(/\/+$/, '')}/${model.name}`
    await attempt(model, async () => {
      const latest = chooseVersions(config.version_policy, model.versions).at(-1)
      const files = latest === undefined ? [] : await listVersionNames(model, latest)
      const manifest = fromModelConfig(config, {
        resourceName: nameOf(model.name),
        servedName: model.name,
        backend: isEnsembleConfig(config) ? '' : selectBackend(config, model.name, files).backend,
        storageUri: folder ?? `hostPath://${join(resolve(directory), model.name)}`,
        isEnsemble,
        forCpu,
      })
      manifests.push(manifest)
    })
  }
  return { manifests, problems }
}

function parseConfig(model: RepositoryModel): ModelConfig {
  if (model.error !== undefined) throw new ServeError('REPOSITORY_UNREADABLE', model.error)
  return model.configText === undefined
    ? emptyModelConfig()
    : parseModelConfig(model.configText, model.configPath)
}

/** Refuses a model's own folder: each version would be taken for a model. */
async function checkRepository(directory: string): Promise<void> {
  const config = await stat(join(directory, 'config.pbtxt')).catch(() => undefined)
  if (config === undefined) return
  throw new ServeError(
    'REPOSITORY_UNREADABLE',
    `'${directory}' is the folder of one model: it has a config.pbtxt; want the folder that holds it`,
  )
}
