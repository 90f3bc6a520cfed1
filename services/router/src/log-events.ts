import type { Logger } from '@tutti/chassis'
import type { CatalogEnsemble, CatalogModel } from './catalog.ts'

/** One line with the counts, and a warning for each ensemble that cannot be served; the step logs its own models. */
export function catalogChanged(
  log: Logger,
  entries: readonly (CatalogModel | CatalogEnsemble)[],
): void {
  log.info('catalog changed', {
    models: entries.filter((entry) => entry.kind === 'model' && isReady(entry)).length,
    ensembles: entries.filter((entry) => entry.kind === 'ensemble' && isReady(entry)).length,
  })
  for (const entry of entries) {
    if (entry.kind === 'ensemble' && entry.reason !== '') {
      log.warn('ensemble is not served', { model: entry.name, reason: entry.reason })
    }
  }
}

function isReady(entry: CatalogModel | CatalogEnsemble): boolean {
  return entry.versions.some((v) => v.state === 'READY')
}
