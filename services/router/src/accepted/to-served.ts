import type { ServedByRouter } from '@tutti/api'
import { BUILTIN_HOST } from '@tutti/builtins'
import { calleesOf } from '@tutti/graph'
import {
  type Catalog,
  type CatalogEnsemble,
  type CatalogModel,
  listedEntries,
  lookupStep,
} from '../catalog/catalog.ts'
import { signatureKey } from '../catalog/signature-key.ts'
import { acceptedConfig, isSame } from './acceptance.ts'
import type {
  AcceptedEnsembleRevision,
  AcceptedModelRevision,
  AcceptedSet,
} from './accepted-set.ts'

/** The models and revisions that requests from inside the cluster reach. */
export type ServedInside = Pick<ServedByRouter, 'models' | 'accepted'>

/** Lists the models and revisions that requests reach now, for the operator. Pure. */
export function toServed(catalog: Catalog, accepted: AcceptedSet): ServedInside {
  const { models } = catalog
  const names: string[] = []
  for (const [name, revisions] of accepted.models) {
    const entry = models.get(name)
    for (const one of revisions) if (servesModel(entry, one)) names.push(one.name)
  }
  for (const one of accepted.ensembles) {
    if (servesEnsemble(catalog, one)) names.push(one.name)
  }
  return { models: listedEntries(catalog).flatMap(toServedModel), accepted: names.toSorted() }
}

function toServedModel(entry: CatalogModel | CatalogEnsemble): ServedByRouter['models'] {
  if (entry.kind !== 'model') return []
  const versions = entry.versions.flatMap(({ version, revisions }) =>
    revisions.length === 0 ? [] : [{ version, revisions: revisions.map((one) => one.revision) }],
  )
  return versions.length === 0 ? [] : [{ name: entry.name, versions }]
}

function servesModel(
  entry: CatalogModel | CatalogEnsemble | undefined,
  one: AcceptedModelRevision,
): boolean {
  if (entry?.kind !== 'model') return false
  return one.accepted.versions.some(({ version, revision }) =>
    entry.versions
      .find((known) => known.version === version)
      ?.revisions.some(
        (live) => live.revision === revision && isSame(live.config, acceptedConfig(one, version)),
      ),
  )
}

/**
 * Tells whether the router serves an ensemble. One that is READY has a plan, and a live replica for every model version that it
 * composes.
 */
function servesEnsemble(catalog: Catalog, { accepted, source }: AcceptedEnsembleRevision): boolean {
  const entry = catalog.models.get(source.name)
  if (entry?.kind !== 'ensemble') return false
  const { plan } = entry
  if (plan === undefined || plan.config !== source.definition?.config) return false
  if (!entry.versions.some(({ state }) => state === 'READY')) return false
  const checkedWith = new Map(Object.entries(accepted.models))
  return calleesOf(plan.graph).every((callee) => {
    const { model } = callee
    const { entry: found, config } = lookupStep(catalog, callee)
    // The models within that ensemble are checked when this check is made for it. Built-ins are the same everywhere.
    if (found.kind === 'ensemble' || model === BUILTIN_HOST) return true
    const before = checkedWith.get(model)
    return before !== undefined && signatureKey(config) === signatureKey(before)
  })
}
