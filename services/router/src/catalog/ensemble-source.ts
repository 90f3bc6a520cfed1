import { ServeError } from '@tutti/errors'
import { type Graph, readConfigGraph, validateGraph } from '@tutti/graph'
import {
  isEnsembleConfig,
  type ModelConfig,
  normaliseModelConfig,
  parseModelConfig,
  plainName,
  printModelConfig,
  selectVersions,
  validateWhenLoaded,
  validateWhenRead,
} from '@tutti/model-config'
import { digestVersion, type RepositoryModel, readLabels } from '@tutti/repository'

/** An ensemble's inputs and outputs, and how it is executed. Immutable. */
export interface EnsembleDefinition {
  /** Configuration that clients get, normalised. */
  readonly config: ModelConfig
  readonly graph: Graph
}

/** An ensemble as a repository or a manifest describes it, before its composing models are looked at. */
export interface EnsembleSource {
  readonly name: string
  /** Absent if it was refused. */
  readonly definition?: EnsembleDefinition
  readonly labels: Readonly<Record<string, readonly string[]>>
  readonly versions: readonly { readonly version: number; readonly revision: string }[]
  /** Reason why the ensemble cannot be served, whatever the composing models are; '' if there is none. */
  readonly reason: string
  /** True if the ensemble was refused only because it has no version. Triton knows such a model all the same. */
  readonly lacksVersion?: boolean
  /** True if the configuration cannot be read. It may then be that of a model that a step serves. */
  readonly isUnreadable?: boolean
  /** True if the ensemble was unloaded, and is only listed. */
  readonly isUnloaded?: boolean
}

/** Makes the source of a model whose configuration cannot be read, so that it may be an ensemble. */
export function unreadableSource(name: string, reason: string): EnsembleSource {
  return { name, labels: {}, versions: [], reason, isUnreadable: true }
}

/**
 * Reads the ensembles among the models of the repositories. A model that cannot be read is listed too, because it may be an
 * ensemble. Steps serve everything else.
 */
export async function readEnsembles(
  models: readonly RepositoryModel[],
): Promise<readonly EnsembleSource[]> {
  const sources: EnsembleSource[] = []
  for (const model of models) {
    try {
      const config = ensembleConfig(model)
      if (config !== undefined) sources.push(await readEnsembleSource(model, config))
    } catch (error) {
      sources.push(unreadableSource(model.name, ServeError.from(error).message))
    }
  }
  return sources
}

/** @throws ServeError if the configuration cannot be read. */
function ensembleConfig(model: RepositoryModel): ModelConfig | undefined {
  if (model.error !== undefined) throw new ServeError('REPOSITORY_UNREADABLE', model.error)
  if (model.configText === undefined) return undefined
  const config = parseModelConfig(model.configText, model.configPath)
  return isEnsembleConfig(config) ? config : undefined
}

/**
 * Reads one ensemble. A fault is not thrown: it becomes the `reason` of the source.
 *
 * @param own - graph of the manifest that the configuration was made of; absent if it is that of a config.pbtxt.
 */
export async function readEnsembleSource(
  model: RepositoryModel,
  parsed: ModelConfig,
  own?: Graph,
): Promise<EnsembleSource> {
  const empty = { name: model.name, labels: {}, versions: [] }
  const name = plainName(model.name)
  let definition: EnsembleDefinition
  let labels: EnsembleSource['labels']
  try {
    const config = normaliseModelConfig({ ...parsed, name: parsed.name || name })
    definition = { config, graph: own ?? readConfigGraph(config) }
    validateGraph(config, definition.graph)
    validateWhenRead(config, name)
    validateWhenLoaded(config)
    labels = await readLabels(model, config.output)
  } catch (error) {
    return { ...empty, reason: ServeError.from(error).message }
  }
  const { config } = definition
  try {
    const chosen = selectVersions(config, model.versions)
    const text = printModelConfig(config)
    const versions = await Promise.all(
      chosen.map(async (version) => ({
        version,
        revision: await digestVersion(model, version, text),
      })),
    )
    return { name: model.name, definition, labels, versions, reason: '' }
  } catch (error) {
    const reason = ServeError.from(error).message
    return { ...empty, definition, labels, reason, lacksVersion: true }
  }
}
