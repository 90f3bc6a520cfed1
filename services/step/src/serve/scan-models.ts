import { ServeError } from '@tutti/errors'
import { isEnsembleConfig, parseModelConfig } from '@tutti/model-config'
import {
  ModelRepository,
  type RepositoryModel,
  type ScanOptions,
  scanRepositories,
} from '@tutti/repository'
import { readBackendConfig } from './backend-config.ts'
import type { ModelFlags } from './model-flags.ts'

/**
 * @param o.hasOthers - models are given in another way than by repositories.
 * @throws ServeError FLAG_INVALID if the flags name no repository, or a backend setting that is not known.
 */
export function checkModelFlags(
  flags: Pick<ModelFlags, 'model-repository' | 'backend-config'>,
  o: { readonly hasOthers?: boolean } = {},
): void {
  readBackendConfig(flags['backend-config'])
  if (flags['model-repository'].length > 0 || o.hasOthers === true) return
  throw new ServeError('FLAG_INVALID', '--model-repository: got none, want at least one folder', {
    details: { field: '--model-repository' },
  })
}

/** Where models come from beside the repositories, and what overrides their configurations. */
export type OtherModels = Pick<ScanOptions, 'directories' | 'overrides'>

/** The repositories that the flags name. */
export function openRepository(
  flags: Pick<ModelFlags, 'model-repository' | 'model-config-name'>,
  others: OtherModels = {},
): ModelRepository {
  return new ModelRepository({ paths: flags['model-repository'], ...toScanOptions(flags, others) })
}

/** Scans what the flags name. @throws ServeError REPOSITORY_UNREADABLE if a repository cannot be read. */
export async function scanModels(
  flags: Pick<ModelFlags, 'model-repository' | 'model-config-name'>,
  others: OtherModels = {},
): Promise<readonly RepositoryModel[]> {
  return await scanRepositories(flags['model-repository'], toScanOptions(flags, others))
}

function toScanOptions(
  flags: Pick<ModelFlags, 'model-config-name'>,
  others: OtherModels,
): ScanOptions {
  const { directories = [], overrides = new Map() } = others
  const configName = flags['model-config-name']
  return { directories, overrides, ...(configName !== undefined && { configName }) }
}

/**
 * Chooses the models of a step by name; no name chooses all. Ensembles are left out: they are a router's.
 *
 * @throws ServeError FLAG_INVALID for a name that is in no repository, or an ensemble's.
 */
export function chooseModels(
  models: readonly RepositoryModel[],
  names: readonly string[],
): readonly RepositoryModel[] {
  const own = models.filter((model) => !isEnsemble(model))
  if (names.length === 0) return own
  for (const name of names) {
    if (own.some((model) => model.name === name)) continue
    const why = models.some((model) => model.name === name)
      ? 'is an ensemble, which a router serves'
      : 'is in no repository'
    const known = own.map((model) => model.name).join(', ')
    throw new ServeError(
      'FLAG_INVALID',
      `--model: "${name}" ${why}; there are ${known || 'none'}`,
      {
        details: { field: '--model' },
      },
    )
  }
  return own.filter((model) => names.includes(model.name))
}

/** A config that does not parse is not known to be an ensemble's: loading the model reports it. */
function isEnsemble(model: RepositoryModel): boolean {
  if (model.error !== undefined || model.configText === undefined) return false
  try {
    return isEnsembleConfig(parseModelConfig(model.configText, model.configPath))
  } catch {
    return false
  }
}
