import { BUILTIN_HOST } from '@tutti/builtins'
import { ServeError } from '@tutti/errors'
import {
  type ComposingModel,
  completeEnsembleConfig,
  type EnsemblePlan,
  planEnsemble,
} from '@tutti/graph'
import { unloadedReason } from '@tutti/serving'
import type {
  Catalog,
  CatalogEnsemble,
  CatalogEntries,
  CatalogModel,
  CatalogVersion,
} from './catalog.ts'
import { findLost, findMissingModels, inheritLabels, toComposing } from './composing-models.ts'
import type { EnsembleDefinition, EnsembleSource } from './ensemble-source.ts'
import { signatureKey } from './signature-key.ts'

/** The former catalog, and whether an ensemble that was valid there and is no longer valid is listed as unloaded. */
export interface Before {
  readonly previous: Catalog
  readonly takesDown: boolean
}

/**
 * Makes the entry of an ensemble by planning it with the models that there are now. If it does not fit them, the entry is that
 * of `invalidEnsemble`.
 */
export function planned(
  entries: CatalogEntries,
  source: EnsembleSource,
  definition: EnsembleDefinition,
  o: Before,
): CatalogEnsemble {
  const { graph } = definition
  try {
    const composing: [string, string][] = []
    const lookup = (name: string): ComposingModel | undefined => {
      const model = toComposing(entries, graph, name)
      for (const one of [model?.config, ...(model?.configs?.values() ?? [])]) {
        if (one !== undefined) composing.push([name, signatureKey(one)])
      }
      for (const output of model?.optionalOutputs ?? []) composing.push([name, output])
      return model
    }
    const checked = planEnsemble({ ...definition, lookup })
    const planKey = JSON.stringify(composing)
    const plan = samePlan(o.previous.models.get(source.name), definition, planKey) ?? checked
    const lost = findLost(entries, graph)
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
    const missing = isWaiting ? findMissingModels(entries, graph) : []
    return invalidEnsemble(source, o, message, { isWaiting, missing })
  }
}

/** Returns the previous plan if the new one is the same, so that counts by plan (`max_inflight_requests`) go on. */
function samePlan(
  previous: CatalogModel | CatalogEnsemble | undefined,
  { config, graph }: EnsembleDefinition,
  planKey: string,
): EnsemblePlan | undefined {
  if (previous?.kind !== 'ensemble' || previous.planKey !== planKey) return undefined
  const { plan } = previous
  return plan?.config === config && plan.graph === graph ? plan : undefined
}

function ensembleVersion(
  version: EnsembleSource['versions'][number],
  lost: CatalogVersion['lost'],
): CatalogVersion {
  if (lost === undefined) return { ...version, state: 'READY', reason: '', revisions: [] }
  const reason =
    lost.model === BUILTIN_HOST
      ? 'depends on built-ins, which no replica runs'
      : `depends on '${lost.model}', which no replica serves`
  return { ...version, state: 'UNAVAILABLE', reason, revisions: [], lost }
}

type Lacks = Pick<CatalogEnsemble, 'isWaiting' | 'missing'>

const NOTHING_MISSING: Lacks = { isWaiting: false, missing: [] }

/** Makes the entry of an ensemble that cannot be served with the models that there are now. */
export function invalidEnsemble(
  source: EnsembleSource,
  { previous, takesDown }: Before,
  message: string,
  lacks = NOTHING_MISSING,
): CatalogEnsemble {
  const before = previous.models.get(source.name)
  const wasValid = before?.kind === 'ensemble' && before.versions.length > 0
  return takesDown && wasValid ? unloaded(source, message) : refusedEnsemble(source, message, lacks)
}

/**
 * Makes the entry of an ensemble that is only listed.
 *
 * @param cause - the reason why it was taken down; absent if a client asked for that.
 */
export function unloaded(source: EnsembleSource, cause?: string): CatalogEnsemble {
  const { name, labels, definition, versions } = source
  const reason = unloadedReason(cause)
  return {
    kind: 'ensemble',
    name,
    labels,
    ...(definition !== undefined && { config: definition.config }),
    versions: versions.map((v) => ({ ...v, state: 'UNAVAILABLE', reason, revisions: [] })),
    reason: versions.length === 0 ? reason : '',
    ...NOTHING_MISSING,
    ...(cause !== undefined && { cause }),
  }
}

/** Makes the entry of an ensemble that was never valid, and so was never loaded. It is listed by name, with the reason. */
export function refusedEnsemble(
  { name, labels, lacksVersion, definition }: EnsembleSource,
  reason: string,
  lacks = NOTHING_MISSING,
): CatalogEnsemble {
  const known =
    lacksVersion === true && definition !== undefined ? { config: definition.config } : {}
  return { kind: 'ensemble', name, labels, versions: [], reason, ...known, ...lacks }
}
