import { isUnloadedReason } from '@tutti/serving'
import type { CatalogModel, CatalogVersion } from '../catalog/catalog.ts'
import { remembered } from '../catalog/remembered.ts'
import { signatureKey } from '../catalog/signature-key.ts'
import type { AcceptedModelRevision } from './accepted-set.ts'

/**
 * Builds the entry of a model that may sleep and of which an accepted version has no replica. Such a version is READY: requests
 * for it wait for the first replica. One that a replica could not load is left as it is, with its reason. Pure.
 *
 * @param o.described - the model as replicas describe it.
 * @param o.before - the entry that was built last.
 * @returns undefined if replicas serve every accepted version, or say why they do not.
 */
export function toSleeping(
  one: AcceptedModelRevision,
  o: { readonly described: CatalogModel | undefined; readonly before: CatalogModel | undefined },
): CatalogModel | undefined {
  const { described, before } = o
  const asleep = one.accepted.versions.filter(({ version }) => {
    const known = described?.versions.find((served) => served.version === version)
    return known === undefined || isWithoutFault(known)
  })
  if (asleep.length === 0) return undefined
  return remembered(before, [one, described], (): CatalogModel => {
    const sleeping = asleep.map((version) => toVersion(one, version))
    const numbers = new Set(sleeping.map(({ version }) => version))
    const others = (described?.versions ?? []).filter(({ version }) => !numbers.has(version))
    const versions = [...others, ...sleeping].toSorted((a, b) => a.version - b.version)
    const latest = versions.findLast(({ state }) => state === 'READY')?.revisions[0]
    const { modelName: name, config } = one.accepted
    const { labels = described?.labels ?? {} } = latest ?? {}
    return { kind: 'model', name, config: latest?.config ?? config, labels, versions, reason: '' }
  })
}

/** Tells whether a version is not served, and no replica says that it failed to load it. */
function isWithoutFault({ state, reason }: CatalogVersion): boolean {
  if (state === 'UNAVAILABLE') return isUnloadedReason(reason)
  return state !== 'READY'
}

function toVersion(
  { accepted, sleep }: AcceptedModelRevision,
  { version, revision, config = accepted.config }: (typeof accepted)['versions'][number],
): CatalogVersion {
  const signature = signatureKey(config)
  const revisions = [{ revision, config, signature, labels: {}, replicas: 0 }]
  return {
    version,
    revision,
    state: 'READY',
    reason: '',
    revisions,
    ...(sleep !== undefined && { sleep }),
  }
}
