import {
  type Callee,
  type ComposingModel,
  calledNamesOf,
  calleesOf,
  type EnsemblePlan,
  fallbackOf,
  type Graph,
  optionalOutputsOf,
} from '@tutti/graph'
import type { ModelConfig } from '@tutti/model-config'
import { isUnloadedReason, versionFailures } from '@tutti/serving'
import type { CatalogEnsemble, CatalogEntries, CatalogModel, CatalogVersion } from './catalog.ts'
import type { EnsembleSource } from './ensemble-source.ts'

/** Lists the models that an ensemble is composed of and that no step has ever described. Nested ensembles are included. */
export function findMissingModels(entries: CatalogEntries, graph: Graph): readonly string[] {
  const missing = calledNamesOf(graph).flatMap((model) => {
    const entry = entries.get(model)
    if (entry === undefined) return [model]
    return entry.kind === 'ensemble' ? entry.missing : []
  })
  return [...new Set(missing)]
}

/** Lists the versions of the model that the ensemble's steps name, and their fallbacks. */
function wantedVersions(graph: Graph, model: string): readonly number[] {
  const named = calleesOf(graph).filter((callee) => callee.model === model)
  return [...new Set(named.map((step) => step.version))].filter((version) => version !== -1)
}

/** Lists the versions that are READY, or were until the last replica went: an ensemble stays valid meanwhile. */
function usableVersions(entry: CatalogModel | CatalogEnsemble): readonly CatalogVersion[] {
  return entry.versions.filter((v) => v.state === 'READY' || v.lost !== undefined)
}

function findUsable(
  entry: CatalogModel | CatalogEnsemble,
  version: number | undefined,
): CatalogVersion | undefined {
  const usable = usableVersions(entry)
  return version === undefined ? usable.at(-1) : usable.find((v) => v.version === version)
}

/**
 * Finds the first model version without which an ensemble cannot answer and that has lost its replicas; returns undefined if there is
 * none. A step whose fallback can answer does not need its own.
 */
export function findLost(entries: CatalogEntries, { steps }: Graph): CatalogVersion['lost'] {
  const lostOf = ({ model, version }: Callee): CatalogVersion['lost'] => {
    const entry = entries.get(model)
    return entry && findUsable(entry, version === -1 ? undefined : version)?.lost
  }
  for (const { call = {}, ...step } of steps) {
    const lost = lostOf(step)
    if (lost === undefined) continue
    const fallback = fallbackOf(call)
    if (call.onError === undefined || (fallback && lostOf(fallback))) return lost
  }
  return undefined
}

/** Describes a composing model of an ensemble, for its planning; returns undefined if there is no such model. */
export function toComposing(
  entries: CatalogEntries,
  ensemble: Graph,
  name: string,
): ComposingModel | undefined {
  const entry = entries.get(name)
  if (entry === undefined) return undefined
  const config = findUsable(entry, undefined)?.revisions[0]?.config ?? entry.config
  const configs = wantedVersions(ensemble, name).flatMap((version): [number, ModelConfig][] => {
    const own = findUsable(entry, version)?.revisions[0]?.config
    return own === undefined ? [] : [[version, own]]
  })
  return {
    readyVersions: usableVersions(entry).map((v) => v.version),
    ...(config !== undefined && { config }),
    configs: new Map(configs),
    ...(entry.kind === 'ensemble' &&
      entry.plan !== undefined && { optionalOutputs: optionalOutputsOf(entry.plan.graph) }),
    ...(entry.reason !== '' && { configError: entry.reason }),
    ...findVersionError(entry),
  }
}

/** Finds why no version is loaded, if that is known. */
function findVersionError(entry: CatalogModel | CatalogEnsemble): {
  readonly versionError?: string
} {
  if (entry.kind === 'ensemble' && entry.cause !== undefined) return { versionError: entry.cause }
  const failed = entry.versions.filter(
    (v) => v.reason !== '' && !isUnloadedReason(v.reason) && v.lost === undefined,
  )
  return failed.length === 0 ? {} : { versionError: versionFailures(failed) }
}

/**
 * Finds the labels of an ensemble's outputs. An output without labels of its own takes those of the model output that makes it
 * (triton-semantics 1.3).
 */
export function inheritLabels(
  entries: CatalogEntries,
  source: EnsembleSource,
  plan: EnsemblePlan,
): Readonly<Record<string, readonly string[]>> {
  const labels: Record<string, readonly string[]> = { ...source.labels }
  for (const step of plan.graph.steps) {
    // A built-in has no labels, be it beside a model that has some.
    if (step.builtin !== undefined) continue
    const made = labelsOf(entries.get(step.model), step.version)
    for (const { name: output, tensor } of step.outputs) {
      const lines = made[output]
      if (lines !== undefined && labels[tensor] === undefined) labels[tensor] = lines
    }
  }
  return labels
}

/** Finds labels. Each version of a model may have other labels. */
function labelsOf(
  entry: CatalogModel | CatalogEnsemble | undefined,
  version: number,
): CatalogModel['labels'] {
  const found = entry && findUsable(entry, version === -1 ? undefined : version)
  return found?.revisions[0]?.labels ?? entry?.labels ?? {}
}
