import { type Clock, flagRefusal, type Logger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { isEnsembleConfig } from '@tutti/model-config'
import {
  type ModelRepository,
  pollRepository,
  RepositoryWatch,
  repositoryUnreadable,
} from '@tutti/repository'
import { refuseFailures } from '@tutti/serving'
import type { Step } from '../step.ts'
import type { OtherModels } from './model-flags.ts'
import type { StepFlags } from './step-flags.ts'

export interface StartModelsOptions {
  readonly step: Step
  readonly repository: ModelRepository
  readonly others: Required<OtherModels>
  readonly clock: Clock
  readonly log: Logger
  /** Signal that aborts when a stop signal comes before the start is done. */
  readonly signal?: AbortSignal
}

type Follow = (signal: AbortSignal) => Promise<void>

/**
 * Loads the models that are served from the start.
 *
 * @returns a function that follows changes on disk until its signal aborts, if `--model-control-mode` asks for that, and then
 * resolves.
 * @throws ServeError if a repository cannot be read, if a flag names a model that cannot be served here, or, with
 * `--exit-on-error`, if a model fails to load.
 */
export async function loadStartModels(flags: StepFlags, o: StartModelsOptions): Promise<Follow> {
  return await o.repository.untilStopped(o.signal, () => loadModelsOf(flags, o))
}

async function loadModelsOf(flags: StepFlags, o: StartModelsOptions): Promise<Follow> {
  const { step, repository, others } = o
  const load = async (names: readonly string[]): Promise<void> => {
    const failures = await loadModels(step, names)
    if (flags['exit-on-error']) refuseFailures(failures)
  }
  const chosen = [...flags.model, ...(await readModelsOf(repository, flags.ensemble))]
  const own = ownModels(repository, chosen)
  if (flags['model-control-mode'] === 'none') {
    const names = await own.names()
    await requireThere(repository, '--model', flags.model, names)
    await requireThere(repository, '--model-overrides', [...others.overrides.keys()])
    await load(names)
    return async () => {}
  }
  const watch = new RepositoryWatch(own)
  await load(await watch.start())
  return (signal) =>
    pollRepository({
      watch,
      pollMs: flags['repository-poll-secs'] * 1000,
      clock: o.clock,
      signal,
      apply: async ({ changed, removed }) => {
        for (const name of removed) step.models.unload(name)
        await loadModels(step, changed)
      },
      failed: (error) => repositoryUnreadable(o.log, error),
    })
}

/**
 * Selects the part of the repositories to follow.
 *
 * @param chosen - all models that are no ensembles if empty.
 */
function ownModels(
  repository: ModelRepository,
  chosen: readonly string[],
): Pick<ModelRepository, 'names' | 'take'> {
  const isOwn = async (name: string): Promise<boolean> => {
    if (chosen.length > 0 && !chosen.includes(name)) return false
    const config = await repository.readConfig(name)
    return config === undefined || !isEnsembleConfig(config)
  }
  return {
    names: async () => {
      const names = await repository.names()
      const areOwn = await Promise.all(names.map(isOwn))
      return names.filter((_, i) => areOwn[i])
    },
    take: (name) => repository.take(name),
  }
}

/**
 * Reads which models the steps of ensembles run, those of nested ensembles too.
 *
 * @throws ServeError FLAG_INVALID for a name that is no ensemble of the repositories.
 */
async function readModelsOf(
  repository: Pick<ModelRepository, 'names' | 'readConfig'>,
  ensembles: readonly string[],
): Promise<ReadonlySet<string>> {
  await requireThere(repository, '--ensemble', ensembles)
  const models = new Set<string>()
  const seen = new Set(ensembles)
  for (const name of seen) {
    const config = await repository.readConfig(name)
    if (config !== undefined && isEnsembleConfig(config)) {
      for (const step of config.ensemble_scheduling?.step ?? []) seen.add(step.model_name)
    } else if (ensembles.includes(name)) {
      throw flagRefusal('--ensemble', `"${name}" is a model; want an ensemble, or --model`)
    } else models.add(name)
  }
  return models
}

/**
 * Refuses names that no repository has. Where no model is added later, such a name is a typing error. @param own - the models of
 * a step; else all.
 */
async function requireThere(
  repository: Pick<ModelRepository, 'names'>,
  flag: string,
  names: readonly string[],
  own?: readonly string[],
): Promise<void> {
  const all = await repository.names()
  for (const name of names) {
    if ((own ?? all).includes(name)) continue
    const isEnsemble = own !== undefined && all.includes(name)
    const why = isEnsemble ? 'is an ensemble, which a router serves' : 'is in no repository'
    throw flagRefusal(flag, `"${name}" ${why}; there are ${all.join(', ') || 'none'}`)
  }
}

/** Loads models as they are on disk. @returns what failed, by name; the index says so too. */
async function loadModels(
  step: Step,
  names: readonly string[],
): Promise<ReadonlyMap<string, ServeError>> {
  const failures = new Map<string, ServeError>()
  const failed = (name: string) => (error: unknown) => failures.set(name, ServeError.from(error))
  await Promise.all(names.map((name) => step.models.load(name).catch(failed(name))))
  return failures
}
