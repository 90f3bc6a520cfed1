import { findDependencies, type PinnedVersion } from '@tutti/ensemble'
import type { Catalog, CatalogVersion, ResolvedEntry } from './catalog.ts'

interface Held {
  readonly entry: ResolvedEntry['entry']
  readonly catalog: Catalog
  count: number
}

/**
 * Counts the requests in flight by the catalog entry under which they were admitted, so that a replaced version can be kept until
 * none of them can ask for it any more, be it in a later step of an ensemble.
 */
export class PinCounts {
  readonly #held = new Map<CatalogVersion, Held>()
  #waiting: { readonly pin: PinnedVersion; readonly resolve: () => void }[] = []

  /** Counts a request. @returns ends it; only its first call counts. */
  hold({ entry, version }: ResolvedEntry, catalog: Catalog): () => void {
    const held = this.#held.get(version) ?? { entry, catalog, count: 0 }
    held.count += 1
    this.#held.set(version, held)
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      held.count -= 1
      if (held.count > 0) return
      this.#held.delete(version)
      if (this.#waiting.length > 0) this.#wake()
    }
  }

  /** Resolves once no request that counts now uses the version; at once if none does. */
  whenUnpinned(pin: PinnedVersion): Promise<void> {
    if (!this.isPinned(pin)) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push({ pin, resolve }))
  }

  #wake(): void {
    this.#waiting = this.#waiting.filter(({ pin, resolve }) => {
      if (this.isPinned(pin)) return true
      resolve()
      return false
    })
  }

  /** True if a request in flight uses the version, or may yet. */
  isPinned(pin: PinnedVersion): boolean {
    for (const [version, held] of this.#held) if (uses(version, held, pin)) return true
    return false
  }
}

function uses(version: CatalogVersion, { entry, catalog }: Held, pin: PinnedVersion): boolean {
  if (entry.kind === 'model') return entry.name === pin.model && isPin(version, pin)
  const reached = new Set([entry.name])
  for (const name of reached) {
    const found = catalog.models.get(name)
    if (found?.config === undefined) continue
    for (const further of findDependencies(found.config)) reached.add(further)
  }
  const offered = catalog.models.get(pin.model)?.versions ?? []
  return reached.has(pin.model) && offered.some((one) => isPin(one, pin))
}

function isPin({ version, revision }: CatalogVersion, pin: PinnedVersion): boolean {
  return version === pin.version && revision === pin.revision
}
