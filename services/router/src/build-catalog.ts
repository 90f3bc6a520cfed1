import {
  type ComposingModel,
  completeEnsembleConfig,
  type EnsemblePlan,
  orderEnsembles,
  planEnsemble,
  type ServedModel,
  type StepDescription,
} from '@tutti/ensemble'
import { ServeError } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'
import { type Catalog, type CatalogEnsemble, type CatalogModel, readyVersions } from './catalog.ts'
import type { EnsembleSource } from './ensemble-source.ts'

type Entries = Map<string, CatalogModel | CatalogEnsemble>

/** Joins what the steps serve and which ensembles there are into one view. Pure. */
export function buildCatalog(
  descriptions: readonly StepDescription[],
  ensembles: readonly EnsembleSource[],
): Catalog {
  const entries: Entries = new Map()
  for (const description of descriptions) {
    for (const model of description.models) entries.set(model.name, toCatalogModel(model))
  }
  addEnsembles(entries, ensembles)
  return { models: new Map([...entries].toSorted(([a], [b]) => (a < b ? -1 : 1))) }
}

function toCatalogModel(model: ServedModel): CatalogModel {
  const { name, labels, versions, reason } = model
  return {
    kind: 'model',
    name,
    labels,
    versions,
    reason,
    ...(model.config !== undefined && { config: model.config }),
  }
}

function addEnsembles(entries: Entries, sources: readonly EnsembleSource[]): void {
  const usable = new Map<string, ModelConfig>()
  for (const source of sources) {
    if (source.config === undefined) entries.set(source.name, refused(source, source.reason))
    else usable.set(source.name, source.config)
  }
  const { order, cycles } = orderEnsembles(usable)
  const byName = new Map(sources.map((source) => [source.name, source]))
  for (const [name, error] of cycles) {
    const source = byName.get(name)
    if (source !== undefined) entries.set(name, refused(source, error.message))
  }
  for (const name of order) {
    const source = byName.get(name)
    const config = usable.get(name)
    if (source === undefined || config === undefined || cycles.has(name)) continue
    entries.set(name, planned(entries, source, config))
  }
}

function planned(entries: Entries, source: EnsembleSource, config: ModelConfig): CatalogEnsemble {
  try {
    const plan = planEnsemble({ config, lookup: (model) => toComposing(entries.get(model)) })
    return {
      kind: 'ensemble',
      name: source.name,
      config: completeEnsembleConfig(plan),
      labels: inheritLabels(entries, source, plan),
      versions: source.versions.map((v) => ({ ...v, state: 'READY', reason: '' })),
      reason: '',
      plan,
    }
  } catch (error) {
    return refused(source, ServeError.from(error).message)
  }
}

/** An ensemble that never became valid was never loaded: it is listed by name, with the reason. */
function refused(source: EnsembleSource, reason: string): CatalogEnsemble {
  return { kind: 'ensemble', name: source.name, labels: source.labels, versions: [], reason }
}

function toComposing(
  entry: CatalogModel | CatalogEnsemble | undefined,
): ComposingModel | undefined {
  if (entry === undefined) return undefined
  const failed = entry.versions.filter((v) => v.reason !== '')
  return {
    readyVersions: readyVersions(entry),
    ...(entry.config !== undefined && { config: entry.config }),
    ...(entry.reason !== '' && { configError: entry.reason }),
    ...(failed.length > 0 && {
      versionError: failed
        .map((v) => `version ${v.version} is at UNAVAILABLE state: ${v.reason};`)
        .join(' '),
    }),
  }
}

/** An ensemble output without labels of its own takes those of the model output that makes it (triton-semantics 1.3). */
function inheritLabels(
  entries: Entries,
  source: EnsembleSource,
  plan: EnsemblePlan,
): Readonly<Record<string, readonly string[]>> {
  const labels: Record<string, readonly string[]> = { ...source.labels }
  for (const step of plan.config.ensemble_scheduling?.step ?? []) {
    const made = entries.get(step.model_name)?.labels ?? {}
    for (const [output, tensor] of Object.entries(step.output_map)) {
      const lines = made[output]
      if (lines !== undefined && labels[tensor] === undefined) labels[tensor] = lines
    }
  }
  return labels
}
