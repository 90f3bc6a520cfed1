import type { Logger } from '@tutti/chassis'
import type { ServeError } from '@tutti/errors'
import type { Catalog, CatalogEnsemble, CatalogModel } from './catalog.ts'

/** The front doors are open; the fields say where. */
export const SERVING = 'server ready'

/** One line with the counts, and a warning for each ensemble that cannot be served now; the step logs its own models. */
export function catalogChanged(log: Logger, catalog: Catalog, previous: Catalog): void {
  const entries = [...catalog.models.values()]
  log.info('catalog changed', {
    models: entries.filter((entry) => entry.kind === 'model' && isReady(entry)).length,
    ensembles: entries.filter((entry) => entry.kind === 'ensemble' && isReady(entry)).length,
  })
  for (const entry of entries) {
    const reason = whyNot(entry)
    if (entry.kind !== 'ensemble' || reason === '') continue
    const before = previous.models.get(entry.name)
    if (before !== undefined && whyNot(before) === reason) continue
    log.warn('ensemble is not served', { model: entry.name, reason })
  }
}

/** A step came, or says that it serves something else. */
export function stepAnnounced(log: Logger, replica: string, revisions: number): void {
  log.info('step announced', { replica, revisions })
}

export function stepRemoved(log: Logger, replica: string, error: ServeError): void {
  log.info('step gone', { replica, reason: error.reason, error: error.message })
}

export function describeFailed(
  log: Logger,
  replica: string,
  error: ServeError,
  delayMs: number,
): void {
  log.warn('step did not describe itself', {
    replica,
    reason: error.reason,
    error: error.message,
    delayMs,
  })
}

function whyNot(entry: CatalogModel | CatalogEnsemble): string {
  return entry.reason || (entry.versions.find((v) => v.reason !== '')?.reason ?? '')
}

function isReady(entry: CatalogModel | CatalogEnsemble): boolean {
  return entry.versions.some((v) => v.state === 'READY')
}
