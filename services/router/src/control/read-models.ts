import type { EnsembleRules } from '@tutti/ensemble'
import { ServeError } from '@tutti/errors'
import { isEnsembleConfig, parseModelConfig } from '@tutti/model-config'
import type { ModelRepository } from '@tutti/repository'
import { type LoadParameters, pollFailed } from '@tutti/server'
import { type EnsembleSource, readEnsemble } from '../ensemble-source.ts'
import { dependenciesOf } from './ensemble-set.ts'

/** An ensemble as it is now, with the digest of its files. */
export interface ReadEnsemble {
  readonly source: EnsembleSource
  readonly digest: string
}

/** What a load of some names amounts to. */
export interface ReadModels {
  /** The ensembles among them and those that they contain. */
  readonly ensembles: ReadonlyMap<string, ReadEnsemble>
  /** Everything else that was named or is needed. */
  readonly models: ReadonlySet<string>
  /** Ensembles that could not be read. */
  readonly failures: ReadonlyMap<string, ServeError>
}

/**
 * Reads the ensembles that are named, and what they are composed of, again and again until all is known.
 *
 * @param o.parameters - hold for the names, not for what these are composed of.
 * @param o.isEnsemble - what is an ensemble already: one whose configuration broke is not left to the hosts.
 */
export async function readModels(
  repository: Pick<ModelRepository, 'take' | 'readConfig'>,
  names: readonly string[],
  o: {
    readonly parameters: LoadParameters | undefined
    readonly isEnsemble: (name: string) => boolean
    /** Of ensembles whose configuration is that of a manifest. */
    readonly rules?: ReadonlyMap<string, EnsembleRules> | undefined
  },
): Promise<ReadModels> {
  const ensembles = new Map<string, ReadEnsemble>()
  const models = new Set<string>()
  const failures = new Map<string, ServeError>()
  const reached = new Set(names)
  const read = async (name: string): Promise<void> => {
    const own = names.includes(name) ? o.parameters : undefined
    const config = await repository.readConfig(name, own)
    if (config === undefined ? !o.isEnsemble(name) : !isEnsembleConfig(config)) {
      models.add(name)
      return
    }
    try {
      const ensemble = await readOne(repository, name, own)
      if (ensemble === undefined) {
        models.add(name)
        return
      }
      // A load request with a configuration of its own is about another graph.
      const rules = own?.config === undefined ? o.rules?.get(name) : undefined
      const source = { ...ensemble.source, ...(rules !== undefined && { rules }) }
      ensembles.set(name, { ...ensemble, source })
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

/** @returns undefined if it is none. */
async function readOne(
  repository: Pick<ModelRepository, 'take'>,
  name: string,
  parameters: LoadParameters | undefined,
): Promise<ReadEnsemble | undefined> {
  const { model, digest, release } = await repository.take(name, parameters)
  try {
    const config = parseModelConfig(model.configText ?? '', model.configPath)
    if (!isEnsembleConfig(config)) return undefined
    return { source: await readEnsemble(model, config), digest }
  } finally {
    // All that is needed of it was read.
    await release()
  }
}
