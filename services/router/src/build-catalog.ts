import {
  type ComposingModel,
  completeEnsembleConfig,
  type EnsemblePlan,
  findDependencies,
  orderEnsembles,
  planEnsemble,
} from '@tutti/ensemble'
import { ServeError } from '@tutti/errors'
import type { EnsembleStep, ModelConfig } from '@tutti/model-config'
import { isUnloadedReason, unloadedReason, versionFailures } from '@tutti/server'
import {
  type Catalog,
  type CatalogEnsemble,
  type CatalogModel,
  type CatalogVersion,
  EMPTY_CATALOG,
  lostVersion,
} from './catalog.ts'
import type { EnsembleSource } from './ensemble-source.ts'
import { type DescribedStep, mergeReplicas } from './merge-replicas.ts'
import { remembered } from './remembered.ts'
import { signatureKey } from './signature-key.ts'

type Entries = Map<string, CatalogModel | CatalogEnsemble>

/** Lost models that are remembered; a bound, because their names come from outside. */
const MAX_LOST_MODELS = 1024

export interface CatalogOptions {
  /** Models of it that no step describes any more are kept as lost, until a step brings them back; unless `lost` is there. */
  readonly previous?: Catalog
  /** What is lost, of the models that no step describes. */
  readonly lost?: (isDescribed: (model: string) => boolean) => readonly CatalogModel[]
  /** An ensemble that was valid and is not any more is listed as unloaded, with what it had (triton-semantics 1.11). */
  readonly takesDown?: boolean
}

type Before = Required<Pick<CatalogOptions, 'previous' | 'takesDown'>>

/** Joins what the steps serve and which ensembles there are into one view. Pure. */
export function buildCatalog(
  steps: readonly DescribedStep[],
  ensembles: readonly EnsembleSource[],
  { previous = EMPTY_CATALOG, takesDown = false, lost }: CatalogOptions = {},
): Catalog {
  const entries: Entries = new Map(mergeReplicas(steps, previous))
  const missing = lost?.((model) => entries.has(model)) ?? lostModels(entries, previous)
  for (const model of missing) entries.set(model.name, model)
  addEnsembles(entries, ensembles, { previous, takesDown })
  return { models: sortEntries(entries, previous) }
}

/** By name. The names are mostly those of before, which are in order. */
function sortEntries(entries: Entries, previous: Catalog): Catalog['models'] {
  const sorted: Entries = new Map()
  for (const name of previous.models.keys()) {
    const entry = entries.get(name)
    if (entry !== undefined) sorted.set(name, entry)
  }
  if (sorted.size === entries.size) return sorted
  return new Map([...entries].toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

function lostModels(entries: Entries, previous: Catalog): readonly CatalogModel[] {
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

function addEnsembles(entries: Entries, sources: readonly EnsembleSource[], o: Before): void {
  const ordered = orderSources(sources)
  const { order, byName } = ordered
  const open = new Set(byName.keys())
  const add = (name: string): void => {
    const source = byName.get(name)
    if (source === undefined || !open.delete(name)) return
    // What cannot be read is not known to be an ensemble.
    if (source.isUnreadable === true && entries.get(name)?.kind === 'model') return
    const before = o.previous.models.get(name)
    const known = before?.kind === 'ensemble' ? before : undefined
    const wanted = wantedOf(source, known, ordered)
    const composing = composingOf(wanted)
    // What was served may contain ensembles that its successor does not.
    composing.forEach(add)
    const { served, cycle } = wanted
    const former = served === source ? undefined : served
    const models = composing.map((model) => entries.get(model))
    const from = [source, o.takesDown, former, cycle, ...models]
    entries.set(
      name,
      remembered(known, from, () => toEntry(entries, wanted, o)),
    )
  }
  const last = new Set(order)
  for (const { name } of sources) if (!last.has(name)) add(name)
  for (const name of order) add(name)
}

interface Wanted {
  readonly source: EnsembleSource
  /** What was served last; the source itself if that is it. */
  readonly served: EnsembleSource | undefined
  /** Why it cannot be planned. */
  readonly cycle: string | undefined
  /** Absent if it cannot be planned. */
  readonly config: ModelConfig | undefined
}

function wantedOf(
  source: EnsembleSource,
  known: CatalogEnsemble | undefined,
  { cycles, usable }: Ordered,
): Wanted {
  const { name, isUnloaded } = source
  const served = isUnloaded === true ? undefined : known?.source
  const cycle = cycles.get(name)?.message
  // One that is served was on no cycle: a new source of another one made it.
  const isUsable = cycle === undefined || served === source
  return { source, served, cycle, config: isUsable ? usable.get(name) : undefined }
}

function composingOf({ config, served }: Wanted): readonly string[] {
  const configs = [config, served?.config].flatMap((one) => one ?? [])
  return [...new Set(configs.flatMap(findDependencies))]
}

function toEntry(entries: Entries, wanted: Wanted, o: Before): CatalogEnsemble {
  const { source, served, cycle, config } = wanted
  if (source.isUnloaded === true) return unloaded(source)
  let next: CatalogEnsemble
  if (config !== undefined) next = planned(entries, source, config, o)
  else if (cycle !== undefined) next = invalid(source, o, cycle)
  else next = refused(source, source.reason)
  if (next.plan !== undefined || served === undefined) return next
  const kept = served === source ? undefined : keep(entries, served, next, o)
  return kept ?? { ...next, source: served }
}

/** What was served before goes on while its successor cannot be served, as long as it fits its models itself. */
function keep(
  entries: Entries,
  served: EnsembleSource,
  pending: CatalogEnsemble,
  o: Before,
): CatalogEnsemble | undefined {
  if (served.config === undefined) return undefined
  const kept = planned(entries, served, served.config, o)
  return kept.plan === undefined ? undefined : { ...kept, pending }
}

type Ordered = ReturnType<typeof orderEnsembles> & {
  readonly byName: ReadonlyMap<string, EnsembleSource>
  /** Those that may be planned. */
  readonly usable: ReadonlyMap<string, ModelConfig>
}

const ORDERED = new WeakMap<readonly EnsembleSource[], Ordered>()

/** Does not depend on models, which change more often. */
function orderSources(sources: readonly EnsembleSource[]): Ordered {
  const known = ORDERED.get(sources)
  if (known !== undefined) return known
  const byName = new Map(sources.map((source) => [source.name, source]))
  const usable = new Map<string, ModelConfig>()
  for (const { name, config, reason, isUnloaded } of sources) {
    if (isUnloaded !== true && config !== undefined && reason === '') usable.set(name, config)
  }
  const ordered = { ...orderEnsembles(usable), byName, usable }
  ORDERED.set(sources, ordered)
  return ordered
}

function planned(
  entries: Entries,
  source: EnsembleSource,
  config: ModelConfig,
  o: Before,
): CatalogEnsemble {
  try {
    const composing: [string, string][] = []
    const lookup = (name: string): ComposingModel | undefined => {
      const model = toComposing(entries.get(name), wantedVersions(config, name))
      for (const one of [model?.config, ...(model?.configs?.values() ?? [])]) {
        if (one !== undefined) composing.push([name, signatureKey(one)])
      }
      return model
    }
    const checked = planEnsemble({ config, lookup, rules: source.rules })
    const planKey = JSON.stringify(composing)
    const plan = samePlan(o.previous.models.get(source.name), config, planKey) ?? checked
    const lost = findLost(entries, config)
    return {
      kind: 'ensemble',
      name: source.name,
      config: completeEnsembleConfig(plan),
      labels: inheritLabels(entries, source, plan),
      versions: source.versions.map((v) => ensembleVersion(v, lost)),
      reason: '',
      source,
      plan,
      planKey,
      ...NOTHING_MISSING,
    }
  } catch (error) {
    const { message, reason } = ServeError.from(error)
    const isWaiting = reason === 'ENSEMBLE_DEPENDENCY'
    const missing = isWaiting ? findMissing(entries, config) : []
    return invalid(source, o, message, { isWaiting, missing })
  }
}

/** The plan of before if it is the same: what is counted by plan (`max_inflight_requests`) goes on then. */
function samePlan(
  previous: CatalogModel | CatalogEnsemble | undefined,
  config: ModelConfig,
  planKey: string,
): EnsemblePlan | undefined {
  if (previous?.kind !== 'ensemble' || previous.planKey !== planKey) return undefined
  return previous.plan?.config === config ? previous.plan : undefined
}

function ensembleVersion(
  version: EnsembleSource['versions'][number],
  lost: CatalogVersion['lost'],
): CatalogVersion {
  if (lost === undefined) return { ...version, state: 'READY', reason: '', revisions: [] }
  const reason = `depends on '${lost.model}', which no replica serves`
  return { ...version, state: 'UNAVAILABLE', reason, revisions: [], lost }
}

type Lacks = Pick<CatalogEnsemble, 'isWaiting' | 'missing'>

const NOTHING_MISSING: Lacks = { isWaiting: false, missing: [] }

/** An ensemble that cannot be served with what there is now. */
function invalid(
  source: EnsembleSource,
  { previous, takesDown }: Before,
  message: string,
  lacks = NOTHING_MISSING,
): CatalogEnsemble {
  const before = previous.models.get(source.name)
  const wasValid = before?.kind === 'ensemble' && before.versions.length > 0
  return takesDown && wasValid ? unloaded(source, message) : refused(source, message, lacks)
}

function unloaded(source: EnsembleSource, cause?: string): CatalogEnsemble {
  const { name, labels, config, versions } = source
  const reason = unloadedReason(cause)
  return {
    kind: 'ensemble',
    name,
    labels,
    ...(config !== undefined && { config }),
    versions: versions.map((v) => ({ ...v, state: 'UNAVAILABLE', reason, revisions: [] })),
    reason: versions.length === 0 ? reason : '',
    ...NOTHING_MISSING,
    ...(cause !== undefined && { cause }),
  }
}

/** An ensemble that never became valid was never loaded: it is listed by name, with the reason. */
function refused(
  { name, labels, lacksVersion, config }: EnsembleSource,
  reason: string,
  lacks = NOTHING_MISSING,
): CatalogEnsemble {
  const known = lacksVersion === true && config !== undefined ? { config } : {}
  return { kind: 'ensemble', name, labels, versions: [], reason, ...known, ...lacks }
}

function findMissing(entries: Entries, config: ModelConfig): readonly string[] {
  const missing = findDependencies(config).flatMap((model) => {
    const entry = entries.get(model)
    if (entry === undefined) return [model]
    return entry.kind === 'ensemble' ? entry.missing : []
  })
  return [...new Set(missing)]
}

function stepsOf(config: ModelConfig): readonly EnsembleStep[] {
  return config.ensemble_scheduling?.step ?? []
}

/** The versions of the model that the ensemble's steps name. */
function wantedVersions(config: ModelConfig, model: string): readonly number[] {
  const named = stepsOf(config).filter((step) => step.model_name === model)
  return [...new Set(named.map((step) => step.model_version))].filter((version) => version !== -1)
}

/** READY, or READY until the last replica went: an ensemble stays valid meanwhile. */
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

function findLost(entries: Entries, config: ModelConfig): CatalogVersion['lost'] {
  for (const { model_name: model, model_version: version } of stepsOf(config)) {
    const entry = entries.get(model)
    const found = entry && findUsable(entry, version === -1 ? undefined : version)
    if (found?.lost !== undefined) return found.lost
  }
  return undefined
}

function toComposing(
  entry: CatalogModel | CatalogEnsemble | undefined,
  wanted: readonly number[],
): ComposingModel | undefined {
  if (entry === undefined) return undefined
  const config = findUsable(entry, undefined)?.revisions[0]?.config ?? entry.config
  const configs = wanted.flatMap((version): [number, ModelConfig][] => {
    const own = findUsable(entry, version)?.revisions[0]?.config
    return own === undefined ? [] : [[version, own]]
  })
  return {
    readyVersions: usableVersions(entry).map((v) => v.version),
    ...(config !== undefined && { config }),
    configs: new Map(configs),
    ...(entry.reason !== '' && { configError: entry.reason }),
    ...findVersionError(entry),
  }
}

/** Why no version is loaded, if that is known. */
function findVersionError(entry: CatalogModel | CatalogEnsemble): {
  readonly versionError?: string
} {
  if (entry.kind === 'ensemble' && entry.cause !== undefined) return { versionError: entry.cause }
  const failed = entry.versions.filter(
    (v) => v.reason !== '' && !isUnloadedReason(v.reason) && v.lost === undefined,
  )
  return failed.length === 0 ? {} : { versionError: versionFailures(failed) }
}

/** An ensemble output without labels of its own takes those of the model output that makes it (triton-semantics 1.3). */
function inheritLabels(
  entries: Entries,
  source: EnsembleSource,
  plan: EnsemblePlan,
): Readonly<Record<string, readonly string[]>> {
  const labels: Record<string, readonly string[]> = { ...source.labels }
  for (const step of stepsOf(plan.config)) {
    const made = labelsOf(entries.get(step.model_name), step.model_version)
    for (const [output, tensor] of Object.entries(step.output_map)) {
      const lines = made[output]
      if (lines !== undefined && labels[tensor] === undefined) labels[tensor] = lines
    }
  }
  return labels
}

/** Each version of a model may have other labels. */
function labelsOf(
  entry: CatalogModel | CatalogEnsemble | undefined,
  version: number,
): CatalogModel['labels'] {
  const found = entry && findUsable(entry, version === -1 ? undefined : version)
  return found?.revisions[0]?.labels ?? entry?.labels ?? {}
}
