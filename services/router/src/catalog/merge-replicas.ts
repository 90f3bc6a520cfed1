import type { ServedModel, ServedVersion } from '@tutti/api'
import type { Catalog, CatalogModel, CatalogVersion, LiveRevision } from './catalog.ts'
import { remembered } from './remembered.ts'
import { signatureKey } from './signature-key.ts'

/** A replica as the router knows it. */
export interface DescribedStep {
  readonly models: readonly ServedModel[]
  /** Number of the description; a greater number came later. */
  readonly order: number
}

interface View {
  readonly model: ServedModel
  readonly order: number
}

interface VersionView extends View {
  readonly served: ServedVersion
}

/**
 * Merges the models of all replicas into one entry per model. Pure.
 *
 * @param previous - the former catalog, from which unchanged entries are taken.
 */
export function mergeReplicas(
  steps: readonly DescribedStep[],
  previous: Catalog,
): ReadonlyMap<string, CatalogModel> {
  const views = new Map<string, View[]>()
  for (const { models, order } of steps) {
    for (const model of models) {
      const known = views.get(model.name)
      if (known === undefined) views.set(model.name, [{ model, order }])
      else known.push({ model, order })
    }
  }
  const merge = ([name, list]: readonly [string, View[]]): [string, CatalogModel] => {
    const before = previous.models.get(name)
    const from = list.flatMap(({ model, order }) => [model, order])
    const model = before?.kind === 'model' ? before : undefined
    return [name, remembered(model, from, () => mergeModel(name, list))]
  }
  return new Map([...views].map(merge))
}

/** Leaves out the READY versions that are not wanted, and models that then have no version left. */
export function filterReady(
  models: readonly ServedModel[],
  isWanted: (model: ServedModel, version: ServedVersion) => boolean,
): readonly ServedModel[] {
  return models.flatMap((model) => {
    const versions = model.versions.filter((v) => v.state !== 'READY' || isWanted(model, v))
    if (versions.length === model.versions.length) return [model]
    return versions.length === 0 ? [] : [{ ...model, versions }]
  })
}

function mergeModel(name: string, views: readonly View[]): CatalogModel {
  const newestFirst = views.toSorted((a, b) => b.order - a.order)
  const numbers = new Set(views.flatMap(({ model }) => model.versions.map((v) => v.version)))
  const versions = [...numbers]
    .toSorted((a, b) => a - b)
    .map((version) => mergeVersion(version, newestFirst))
  const latest = versions.findLast((v) => v.state === 'READY')?.revisions[0]
  const usable = latest ?? newestFirst.find(({ model }) => model.config !== undefined)?.model
  const reason = versions.length > 0 ? '' : (newestFirst[0]?.model.reason ?? '')
  if (usable?.config !== undefined) {
    const { config, labels } = usable
    return { kind: 'model', name, config, labels, versions, reason }
  }
  return { kind: 'model', name, labels: {}, versions, reason }
}

/** Merges a version: READY if it is so on any replica; otherwise as the newest description says. */
function mergeVersion(version: number, newestFirst: readonly View[]): CatalogVersion {
  const views = newestFirst.flatMap((view): VersionView[] => {
    const served = view.model.versions.find((v) => v.version === version)
    return served === undefined ? [] : [{ ...view, served }]
  })
  const revisions = rankRevisions(views)
  const [pinned] = revisions
  if (pinned !== undefined) {
    return { version, revision: pinned.revision, state: 'READY', reason: '', revisions }
  }
  const newest = views.find(({ served }) => served.state !== 'READY')?.served
  return {
    version,
    revision: newest?.revision ?? '',
    state: newest?.state ?? 'UNAVAILABLE',
    reason: newest?.reason ?? 'the replica describes it without a configuration',
    revisions: [],
  }
}

/**
 * Ranks the revisions that are READY in the order in which requests want them: the most replicas first, then the newest
 * description. So a rollout moves the traffic at once, when half of the replicas are new.
 */
function rankRevisions(newestFirst: readonly VersionView[]): readonly LiveRevision[] {
  const found = new Map<string, LiveRevision & { readonly order: number }>()
  for (const { model, order, served } of newestFirst) {
    const own = served.own ?? model
    if (served.state !== 'READY' || own.config === undefined) continue
    const { revision } = served
    const known = found.get(revision)
    const { config, labels } = known ?? own
    if (config === undefined) continue
    const signature = signatureKey(config)
    const replicas = (known?.replicas ?? 0) + 1
    found.set(revision, {
      revision,
      config,
      signature,
      labels,
      replicas,
      order: known?.order ?? order,
    })
  }
  return [...found.values()].toSorted((a, b) => b.replicas - a.replicas || b.order - a.order)
}
