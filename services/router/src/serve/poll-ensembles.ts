import type { Clock, Logger } from '@tutti/chassis'
import {
  ModelRepository,
  pollRepository,
  RepositoryWatch,
  repositoryUnreadable,
} from '@tutti/repository'
import { RepositoryControl } from '../control/model-control.ts'
import type { Router } from '../router.ts'
import type { RouterFlags } from './router-flags.ts'

type PollingFlags = Pick<
  RouterFlags,
  'model-control-mode' | 'model-repository' | 'repository-poll-secs'
> &
  Partial<Pick<RouterFlags, 'model-config-name'>>

/**
 * Loads the ensembles of the repositories, if the model control mode follows changes. Does nothing in the mode none.
 *
 * @returns a function that follows changes of the repositories until the signal aborts, and then resolves.
 * @throws ServeError if a repository cannot be read.
 */
export async function pollEnsembles(
  flags: PollingFlags,
  o: { readonly router: Router; readonly clock: Clock; readonly log: Logger },
): Promise<(signal: AbortSignal) => Promise<void>> {
  if (flags['model-control-mode'] === 'none') return async () => {}
  const { router, clock, log } = o
  const configName = flags['model-config-name']
  const repository = new ModelRepository({
    paths: flags['model-repository'],
    ...(configName !== undefined && { configName }),
  })
  const control = new RepositoryControl({ router, repository, log })
  const watch = new RepositoryWatch(onlyEnsembles(repository, control))
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

/**
 * Selects the ensembles. Other models of a router's repository are left to the steps. What cannot be read may be an ensemble; one
 * that was one stays so.
 */
function onlyEnsembles(
  repository: ModelRepository,
  control: Pick<RepositoryControl, 'knowsEnsemble'>,
): Pick<ModelRepository, 'names' | 'take'> {
  return {
    names: async () => {
      const names = await repository.names()
      const kinds = await Promise.all(names.map((name) => repository.kindOf(name)))
      return names.filter((name, i) => {
        const kind = kinds[i]
        return kind === 'nothing' ? control.knowsEnsemble(name) : kind !== 'model'
      })
    },
    take: (name, overrides) => repository.take(name, overrides),
  }
}
