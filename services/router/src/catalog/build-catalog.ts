import { addEnsembles } from './add-ensembles.ts'
import {
  type Catalog,
  type CatalogEntries,
  type CatalogModel,
  type CatalogVersion,
  EMPTY_CATALOG,
  lostVersion,
} from './catalog.ts'
import type { EnsembleSource } from './ensemble-source.ts'
import { type DescribedStep, mergeReplicas } from './merge-replicas.ts'

/** Lost models that are remembered; a bound, because their names come from outside. */
const MAX_LOST_MODELS = 1024

export interface CatalogOptions {
  /**
   * Former catalog. Its models that no step describes now are kept as lost until a step describes them. With `lost`, that
   * function decides instead.
   */
  readonly previous?: Catalog
  /** Lists the lost models among those that no step describes, and the models that sleep. */
  readonly lost?: (find: (model: string) => CatalogModel | undefined) => readonly CatalogModel[]
  /** True if an ensemble that is no longer valid is listed as unloaded, with its versions (triton-semantics 1.11). */
  readonly takesDown?: boolean
}

/** Builds one catalog from the models that steps describe and from the ensembles. Pure. */
export function buildCatalog(
  steps: readonly DescribedStep[],
  ensembles: readonly EnsembleSource[],
  { previous = EMPTY_CATALOG, takesDown = false, lost }: CatalogOptions = {},
): Catalog {
  const described = mergeReplicas(steps, previous)
  const entries: CatalogEntries = new Map(described)
  const missing = lost?.((model) => described.get(model)) ?? lostModels(entries, previous)
  for (const model of missing) entries.set(model.name, model)
  addEnsembles(entries, ensembles, { previous, takesDown })
  return { models: sortEntries(entries, previous) }
}

/** Sorts entries by name. Most names are those of the previous catalog, which is in order. */
function sortEntries(entries: CatalogEntries, previous: Catalog): Catalog['models'] {
  const sorted: CatalogEntries = new Map()
  for (const name of previous.models.keys()) {
    const entry = entries.get(name)
    if (entry !== undefined) sorted.set(name, entry)
  }
  if (sorted.size === entries.size) return sorted
  return new Map([...entries].toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

function lostModels(entries: CatalogEntries, previous: Catalog): readonly CatalogModel[] {
  const lost: CatalogModel[] = []
  for (const model of previous.models.values()) {
    if (model.kind !== 'model' || entries.has(model.name)) continue
    const versions = model.versions.flatMap((version) => toLost(model.name, version))
    const wasLost = versions.every((version, i) => version === model.versions[i])
    if (versions.length > 0) lost.push(wasLost ? model : { ...model, versions })
  }
  return lost.slice(0, MAX_LOST_MODELS)
}

function toLost(model: string, version: CatalogVersion): readonly CatalogVersion[] {
  if (version.lost !== undefined) return [version]
  return version.state === 'READY' ? [lostVersion(model, version)] : []
}
