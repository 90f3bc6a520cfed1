import type { EnsemblePlan, VersionState } from '@tutti/ensemble'
import { ServeError } from '@tutti/errors'
import { type ModelConfig, parseModelVersion } from '@tutti/model-config'

export interface CatalogVersion {
  readonly version: number
  readonly revision: string
  readonly state: VersionState
  /** `<Code>: <text>` if the load failed, '' otherwise. */
  readonly reason: string
}

interface CatalogEntry {
  readonly name: string
  /** Completed and normalised; absent if the configuration was refused. */
  readonly config?: ModelConfig
  /** Output name -> label lines. */
  readonly labels: Readonly<Record<string, readonly string[]>>
  /** Ascending. Empty if the model never came as far as loading. */
  readonly versions: readonly CatalogVersion[]
  /** Why there is nothing to load; '' otherwise. */
  readonly reason: string
}

/** A model that step replicas execute. */
export interface CatalogModel extends CatalogEntry {
  readonly kind: 'model'
}

/** A model that the router itself executes as a graph of other models. */
export interface CatalogEnsemble extends CatalogEntry {
  readonly kind: 'ensemble'
  /** Absent if the ensemble is not valid; then no version is READY. */
  readonly plan?: EnsemblePlan
}

/**
 * Everything that clients can name at one moment. Never changes: a request that holds a catalog has pinned
 * every version and revision that it will use, nested ensembles included (invariant 4).
 */
export interface Catalog {
  readonly models: ReadonlyMap<string, CatalogModel | CatalogEnsemble>
}

export const EMPTY_CATALOG: Catalog = { models: new Map() }

/** A READY version of a catalog entry. */
export interface ResolvedEntry {
  readonly entry: (CatalogModel | CatalogEnsemble) & { readonly config: ModelConfig }
  readonly version: CatalogVersion
}

/**
 * Finds the version that a request for `name` gets.
 *
 * @param version - as the client wrote it; '' is the highest READY one.
 * @throws ServeError with the lookup texts of triton-semantics 4.5.
 */
export function lookupModel(catalog: Catalog, name: string, version: string): ResolvedEntry {
  return lookupVersion(catalog, name, parseModelVersion(version))
}

/** As `lookupModel`, with a parsed version: undefined is the highest READY one. */
export function lookupVersion(
  catalog: Catalog,
  name: string,
  version: number | undefined,
): ResolvedEntry {
  const entry = catalog.models.get(name)
  if (entry?.config === undefined || entry.versions.length === 0) {
    throw notFound(`Request for unknown model: '${name}' is not found`, name)
  }
  const usable = { ...entry, config: entry.config }
  if (version === undefined) {
    const latest = entry.versions.findLast((v) => v.state === 'READY')
    if (latest !== undefined) return { entry: usable, version: latest }
    throw notFound(`Request for unknown model: '${name}' has no available versions`, name)
  }
  const found = entry.versions.find((v) => v.version === version)
  if (found === undefined) {
    throw notFound(`Request for unknown model: '${name}' version ${version} is not found`, name)
  }
  if (found.state !== 'READY') {
    throw new ServeError(
      'MODEL_NOT_READY',
      `Request for unknown model: '${name}' version ${version} is not at ready state`,
      { details: { model: name, version: String(version) } },
    )
  }
  return { entry: usable, version: found }
}

/** Highest first would not do: versions print in ascending order, as Triton's metadata does. */
export function readyVersions(entry: CatalogModel | CatalogEnsemble): readonly number[] {
  return entry.versions.filter((v) => v.state === 'READY').map((v) => v.version)
}

function notFound(message: string, model: string): ServeError {
  return new ServeError('MODEL_NOT_FOUND', message, { details: { model } })
}
