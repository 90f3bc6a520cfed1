import { ServeError } from '@tutti/errors'
import { type ModelConfig, type ModelStatistics, parseModelVersion } from '@tutti/model-config'
import type { IndexEntry } from '../backend/inference-backend.ts'

/** A model version as a backend lists it. */
export interface ListedVersion {
  readonly version: number
  readonly state: 'READY' | 'LOADING' | 'UNLOADING' | 'UNAVAILABLE'
  /** `<Code>: <text>` if the load failed, '' otherwise. */
  readonly reason: string
  /** Configuration of the version, if it is not the model's. */
  readonly own?: { readonly config: ModelConfig }
}

/** A model as a backend lists it, whether it can be served or not. */
export interface ListedModel {
  readonly name: string
  /** Configuration of the latest version, completed and normalised; absent if the configuration was refused. */
  readonly config?: ModelConfig
  /** Ascending. Empty if the model never came as far as loading, or if its version policy chooses none. */
  readonly versions: readonly ListedVersion[]
  /** Why there is nothing to load; '' otherwise. */
  readonly reason: string
}

const UNLOADED = 'unloaded'

/**
 * Makes the `reason` of an unloaded model, in Triton's word.
 *
 * @param cause - why it was unloaded; absent: a client unloaded it.
 */
export function unloadedReason(cause?: string): string {
  return cause === undefined ? UNLOADED : `${UNLOADED}: ${cause}`
}

export function isUnloadedReason(reason: string): boolean {
  return reason === UNLOADED || reason.startsWith(`${UNLOADED}: `)
}

/** Lists the READY versions of a model, ascending as in Triton's metadata. */
export function readyVersions(model: ListedModel): readonly number[] {
  return model.versions.filter((v) => v.state === 'READY').map((v) => v.version)
}

/**
 * Checks Triton's strict readiness: every version that was to be served is READY, and each model with a configuration has a
 * version. Unloaded models and versions do not count.
 */
export function areAllReady(models: Iterable<ListedModel>): boolean {
  for (const { config, versions, reason } of models) {
    if (config !== undefined && versions.length === 0 && !isUnloadedReason(reason)) return false
    if (!versions.every((v) => v.state === 'READY' || isUnloadedReason(v.reason))) return false
  }
  return true
}

/** Builds the entries of the repository index, one per version. A model without versions has one entry, with version ''. */
export function toIndex(models: Iterable<ListedModel>, readyOnly: boolean): readonly IndexEntry[] {
  const entries = [...models].flatMap((model): IndexEntry[] => {
    const { name, reason } = model
    if (model.versions.length === 0) return [{ name, version: '', state: 'UNAVAILABLE', reason }]
    return model.versions.map((v) => ({
      name,
      version: String(v.version),
      state: v.state,
      reason: v.reason,
    }))
  })
  return readyOnly ? entries.filter((entry) => entry.state === 'READY') : entries
}

/**
 * Chooses the statistics that were asked for, by name and version; '' is all.
 *
 * @throws ServeError INVALID_REQUEST with Triton's text if nothing is known under the name or version.
 */
export function selectStatistics(
  all: readonly ModelStatistics[],
  name: string,
  version: string,
): readonly ModelStatistics[] {
  const given = parseModelVersion(version)
  // A version without a name says nothing, as in Triton.
  const wanted = name === '' ? undefined : given
  const named = all.filter((one) => name === '' || one.name === name)
  if (name !== '' && named.length === 0) {
    throw new ServeError('INVALID_REQUEST', `requested model '${name}' is not available`)
  }
  const found = named.filter((one) => wanted === undefined || Number(one.version) === wanted)
  if (wanted !== undefined && found.length === 0) {
    throw new ServeError(
      'INVALID_REQUEST',
      `requested model version is not available for model '${name}'`,
    )
  }
  return found.toSorted(
    (a, b) => compareNames(a.name, b.name) || Number(a.version) - Number(b.version),
  )
}

/** Compares names by code unit, whatever the locale. */
export function compareNames(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
