import { ServeError } from '@tutti/errors'
import type { Graph } from '@tutti/graph'
import { isEnsembleConfig, parseModelConfig } from '@tutti/model-config'
import type { ModelKind, ModelRepository } from '@tutti/repository'
import { type LoadParameters, pollFailed } from '@tutti/serving'
import { readEnsembleSource } from '../catalog/ensemble-source.ts'
import { dependenciesOf, type EnsembleSet, type WantedEnsemble } from './ensemble-set.ts'

/** The ensembles and models that a load of some names includes. */
export interface ReadModels {
  /** Ensembles among the names, and the ensembles that these contain. */
  readonly ensembles: ReadonlyMap<string, WantedEnsemble>
  /** Names of all other models that were named or are needed. */
  readonly models: ReadonlySet<string>
  /** Errors of the ensembles that could not be read, by name. */
  readonly failures: ReadonlyMap<string, ServeError>
}

interface ReadOptions {
  readonly parameters: LoadParameters | undefined
  readonly known: Pick<EnsembleSet, 'has' | 'kept'>
  /** No host would say what is wrong with a model. */
  readonly isAlone: boolean
  /** Graphs of ensembles whose configuration is that of a manifest. */
  readonly graphs?: ReadonlyMap<string, Graph> | undefined
}

/**
 * Reads the named ensembles and, level by level, the ensembles that they are composed of.
 *
 * @param o.parameters - parameters of the named models, but not of the models that these are composed of.
 * @param o.known - the ensembles so far. An ensemble whose configuration broke is not left to the hosts.
 */
export async function readModels(
  repository: Pick<ModelRepository, 'take' | 'kindOf'>,
  names: readonly string[],
  o: ReadOptions,
): Promise<ReadModels> {
  const ensembles = new Map<string, WantedEnsemble>()
  const models = new Set<string>()
  const failures = new Map<string, ServeError>()
  const reached = new Set(names)
  const read = async (name: string): Promise<void> => {
    const own = names.includes(name) ? o.parameters : undefined
    if (!isOwn(await repository.kindOf(name, own), name, o)) {
      models.add(name)
      return
    }
    try {
      const ensemble = await readOne(repository, name, { ...o, parameters: own })
      if (ensemble === undefined) {
        models.add(name)
        return
      }
      ensembles.set(name, ensemble)
      for (const model of dependenciesOf(ensemble.source)) reached.add(model)
    } catch (error) {
      failures.set(name, pollFailed(name, ServeError.from(error)))
    }
  }
  let done = 0
  while (done < reached.size) {
    const next = [...reached].slice(done)
    done = reached.size
    await Promise.all(next.map(read))
  }
  return { ensembles, models, failures }
}

/** Tells whether a model is read here as an ensemble. One that was an ensemble stays one until its folder shows another model. */
function isOwn(
  kind: ModelKind,
  name: string,
  { known, isAlone }: Pick<ReadOptions, 'known' | 'isAlone'>,
): boolean {
  if (kind === 'ensemble' || kind === 'model') return kind === 'ensemble'
  return known.has(name) || (isAlone && kind === 'unreadable')
}

/** @returns undefined if it is none. */
async function readOne(
  repository: Pick<ModelRepository, 'take'>,
  name: string,
  { parameters, known, graphs }: ReadOptions,
): Promise<WantedEnsemble | undefined> {
  const { model, digest, filesDigest, release } = await repository.take(name, parameters)
  try {
    const kept = parameters === undefined ? known.kept(name, filesDigest) : undefined
    if (kept !== undefined) return kept
    const config = parseModelConfig(model.configText ?? '', model.configPath)
    if (!isEnsembleConfig(config)) {
      if (!known.has(name)) return undefined
      const text = `${model.configPath}: it has no ensemble_scheduling, and there is no model file`
      throw new ServeError('CONFIG_INVALID', text, { details: { model: name } })
    }
    // A load request with a configuration of its own is about another graph.
    const own = parameters?.config === undefined ? graphs?.get(name) : undefined
    return { source: await readEnsembleSource(model, config, own), digest, filesDigest }
  } finally {
    // All that is needed of it was read.
    await release()
  }
}
