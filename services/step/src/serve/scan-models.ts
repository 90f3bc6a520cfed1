import { flagRefusal } from '@tutti/chassis'
import { ModelRepository, type ScanOptions } from '@tutti/repository'
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
  throw flagRefusal('--model-repository', 'got none, want at least one folder')
}

/** Where models come from beside the repositories, and what overrides their configurations. */
export type OtherModels = Pick<ScanOptions, 'directories' | 'overrides'>

/** The repositories that the flags name. */
export function openRepository(
  flags: Pick<ModelFlags, 'model-repository' | 'model-config-name'>,
  others: OtherModels = {},
): ModelRepository {
  const configName = flags['model-config-name']
  return new ModelRepository({
    paths: flags['model-repository'],
    ...others,
    ...(configName !== undefined && { configName }),
  })
}
