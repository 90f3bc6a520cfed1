import type { Logger } from '@tutti/chassis'
import type { ServeError } from '@tutti/errors'
import { isDecoupled } from '@tutti/model-config'
import { isUnloadedReason } from '@tutti/serving'
import {
  type Catalog,
  type CatalogEnsemble,
  type CatalogModel,
  hasReadyVersion,
  listedEntries,
  whyNotServed,
} from './catalog/catalog.ts'

/**
 * Logs the numbers of ready models and ensembles if they changed, and each ensemble that cannot be served for a new reason.
 * That is a warning, unless the ensemble only waits for a step. A step logs its own models.
 */
export function catalogChanged(
  log: Logger,
  catalog: Catalog,
  previous: Catalog,
  o: { readonly awaitsSteps: boolean },
): void {
  const counts = countReady(catalog)
  const before = countReady(previous)
  if (counts.models !== before.models || counts.ensembles !== before.ensembles) {
    log.info('catalog changed', counts)
  }
  for (const entry of catalog.models.values()) {
    if (entry.kind === 'ensemble' && entry.pending !== undefined) {
      ensembleKept(log, entry, entry.pending, previous)
    }
    warnOfDecoupled(log, entry, previous)
    const reason = whyNotServed(entry)
    if (entry.kind !== 'ensemble' || reason === '' || isUnloadedReason(reason)) continue
    if (isKnown(previous, entry, reason)) continue
    if (entry.isWaiting && o.awaitsSteps)
      log.info('ensemble waits for models', { model: entry.name, reason })
    else log.warn('ensemble is not served', { model: entry.name, reason })
  }
}

/** Logs that the former ensemble goes on in place of the desired one, once for each reason. */
function ensembleKept(
  log: Logger,
  { name: model }: CatalogEnsemble,
  pending: CatalogEnsemble,
  previous: Catalog,
): void {
  const reason = whyNotServed(pending)
  const known = previous.models.get(model)
  if (known?.kind === 'ensemble' && known.pending && whyNotServed(known.pending) === reason) return
  ensembleStays(log, model, reason)
}

/** Logs that an ensemble stays as it was, because its new configuration cannot be served. */
export function ensembleStays(log: Logger, model: string, reason: string): void {
  log.warn('ensemble stays as it was', { model, reason })
}

function isKnown(previous: Catalog, { name }: CatalogEnsemble, reason: string): boolean {
  const known = previous.models.get(name)
  return known !== undefined && whyNotServed(known) === reason
}

function warnOfDecoupled(
  log: Logger,
  entry: CatalogModel | CatalogEnsemble,
  previous: Catalog,
): void {
  if (!saysDecoupled(entry) || saysDecoupled(previous.models.get(entry.name))) return
  const why = 'none of its steps is decoupled, and an ensemble is what its steps are, as in Triton'
  log.warn('model_transaction_policy of an ensemble has no effect', { model: entry.name, why })
}

/** Tells whether an ensemble says that it is decoupled, and is not. */
function saysDecoupled(entry: CatalogModel | CatalogEnsemble | undefined): boolean {
  if (entry?.kind !== 'ensemble' || entry.plan === undefined) return false
  return !entry.plan.decoupled && isDecoupled(entry.plan.config)
}

function countReady(catalog: Catalog): { readonly models: number; readonly ensembles: number } {
  const ready = listedEntries(catalog).filter(hasReadyVersion)
  const models = ready.filter((entry) => entry.kind === 'model').length
  return { models, ensembles: ready.length - models }
}

/** Logs that a step came, or announces other revisions. */
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

/** Logs the end of a load. The reason of a failure is logged where the model failed; the request gets it too. */
export function loadEnded(log: Logger, model: string, failure: ServeError | undefined): void {
  if (failure === undefined) log.info('model load done', { model })
  else {
    log.info('model load not done', { model, reason: failure.reason, error: failure.message })
  }
}

export function unloadRequested(log: Logger, model: string, unloadDependents: boolean): void {
  log.info('model unload requested', { model, unloadDependents })
}

/** Logs that routers have different ensembles under one name. Clients get one or the other, by the router that they reach. */
export function ensemblesDiffer(
  log: Logger,
  o: { readonly ensemble: string; readonly version: number; readonly routers: readonly string[] },
): void {
  log.warn('routers have different ensembles under one name', { ...o, routers: [...o.routers] })
}

export function routerNotDescribed(log: Logger, router: string, error: ServeError): void {
  log.info('router did not describe itself', { router, reason: error.reason, error: error.message })
}

/** Logs that other routes of requests from outside are in force now. */
export function edgeRoutesChanged(log: Logger, routes: number): void {
  log.info('edge routes changed', { routes })
}

/** Logs that the routes of requests from outside cannot be read. Those that were read last stay in force. */
export function edgeRoutesUnreadable(log: Logger, error: ServeError): void {
  log.error('edge routes cannot be read, those before go on', { error })
}

/** Logs that all accepted resources have been read for the first time. */
export function acceptedSynced(
  log: Logger,
  counts: { readonly models: number; readonly ensembles: number },
): void {
  log.info('accepted revisions read', counts)
}

/** Logs that the data of a ControllerRevision cannot be used. Its former data stays. */
export function revisionRefused(log: Logger, revision: string, error: ServeError): void {
  log.error('accepted revision cannot be used', {
    revision,
    reason: error.reason,
    error: error.message,
  })
}

/** Logs that another Model or Ensemble was accepted under the name first. */
export function nameTaken(
  log: Logger,
  model: string,
  { kind, resource }: { readonly kind: string; readonly resource: { readonly name: string } },
): void {
  log.warn('served name is taken by another resource', { model, kind, resource: resource.name })
}

/** Logs that a replica announces an accepted revision, but describes it with another configuration. */
export function configDiffers(
  log: Logger,
  o: {
    readonly replica: string
    readonly model: string
    readonly version: number
    readonly revision: string
  },
): void {
  log.warn('replica describes an accepted revision with another configuration', { ...o })
}
