import { type PinnedVersion } from '@tutti/api'
import { calledNamesOf } from '@tutti/graph'
import type { CatalogVersion, ResolvedEntry } from '../catalog/catalog.ts'

/** A catalog entry, and how many requests in flight were admitted under it. */
export interface PinnedEntry {
  readonly resolved: ResolvedEntry
  requests: number
}

/**
 * The catalog entries under which requests in flight were admitted, so that a replaced version can be kept until none of them can
 * ask for it any longer, be it in a later step of an ensemble.
 */
export class PinnedRequests {
  /** Entries of which a request is in flight. Requests count themselves; `wake` follows if something waits. */
  readonly open: PinnedEntry[] = []
  waiting: { readonly pin: PinnedVersion; readonly resolve: () => void }[] = []

  /** Resolves once no request that is in flight now uses the version; at once if none does. */
  whenUnpinned(pin: PinnedVersion): Promise<void> {
    if (!this.isPinned(pin)) return Promise.resolve()
    return new Promise((resolve) => this.waiting.push({ pin, resolve }))
  }

  wake(): void {
    this.waiting = this.waiting.filter(({ pin, resolve }) => {
      if (this.isPinned(pin)) return true
      resolve()
      return false
    })
  }

  /** True if a request in flight uses the version, or may yet. */
  isPinned(pin: PinnedVersion): boolean {
    return this.open.some(({ resolved }) => uses(resolved, pin))
  }
}

function uses(root: ResolvedEntry, pin: PinnedVersion): boolean {
  const { entry, version, catalog } = root
  if (entry.kind === 'model') return entry.name === pin.model && isPin(version, pin)
  const offered = catalog.models.get(pin.model)?.versions ?? []
  return reachedNames(root).has(pin.model) && offered.some((one) => isPin(one, pin))
}

/** Lists the names that a request may reach: that of its model or ensemble, and all that its graph calls, nested ensembles too. */
export function reachedNames({ entry, catalog }: ResolvedEntry): ReadonlySet<string> {
  const reached = new Set([entry.name])
  for (const name of reached) {
    const found = catalog.models.get(name)
    if (found?.kind !== 'ensemble' || found.plan === undefined) continue
    for (const further of calledNamesOf(found.plan.graph)) reached.add(further)
  }
  return reached
}

function isPin({ version, revision }: CatalogVersion, pin: PinnedVersion): boolean {
  return version === pin.version && revision === pin.revision
}
