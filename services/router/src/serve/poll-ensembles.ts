import type { Clock, Logger } from '@tutti/chassis'
import { isEnsembleConfig } from '@tutti/model-config'
import { ModelRepository, pollRepository, RepositoryWatch } from '@tutti/repository'
import { type ModelHosts, RepositoryControl } from '../control/model-control.ts'
import { repositoryUnreadable } from '../log-events.ts'
import type { Router } from '../router.ts'
import type { RouterFlags } from './router-flags.ts'

/** Steps load their models themselves. */
const NO_HOSTS: ModelHosts = { load: async () => {}, unload: () => {} }

/**
 * Loads the ensembles of the repositories, in the mode that follows them.
 *
 * @returns follows what changes there until the signal aborts, and resolves then.
 * @throws ServeError if a repository cannot be read.
 */
export async function pollEnsembles(
  flags: RouterFlags,
  o: { readonly router: Router; readonly clock: Clock; readonly log: Logger },
): Promise<(signal: AbortSignal) => Promise<void>> {
  if (flags['model-control-mode'] === 'none') return async () => {}
  const { router, clock, log } = o
  const configName = flags['model-config-name']
  const repository = new ModelRepository({
    paths: flags['model-repository'],
    ...(configName !== undefined && { configName }),
  })
  const control = new RepositoryControl({ router, repository, hosts: NO_HOSTS, log })
  const watch = new RepositoryWatch(onlyEnsembles(repository))
  await control.loadAll(await watch.start())
  return (signal) =>
    pollRepository({
      watch,
      pollMs: flags['repository-poll-secs'] * 1000,
      clock,
      signal,
      apply: (changes) => control.follow(changes),
      failed: (error) => repositoryUnreadable(log, error),
    })
}

/** Other models of a router's repository are left to the steps. */
function onlyEnsembles(repository: ModelRepository): Pick<ModelRepository, 'names' | 'take'> {
  return {
    names: async () => {
      const names = await repository.names()
      const configs = await Promise.all(names.map((name) => repository.readConfig(name)))
      return names.filter((_, i) => {
        const config = configs[i]
        return config !== undefined && isEnsembleConfig(config)
      })
    },
    take: (name, overrides) => repository.take(name, overrides),
  }
}
