import type { Logger } from '@tutti/chassis'
import { isConflict, isNamespaceTerminating } from '@tutti/kube'

/** Logs a failed reconcile: as error if it is terminal, as debug if it passes by itself, else as warn. */
export function reconcileFailed(
  log: Logger,
  error: unknown,
  o: { readonly isTerminal: boolean; readonly failures: number },
): void {
  if (o.isTerminal) log.error('reconcile failed for good', { error })
  // Another writer, or a cache that is behind: the next look has fresh data.
  else if (isConflict(error)) log.debug('reconcile met newer data', { error })
  // All that is in it goes, without a person acting, and a namespace may take long.
  else if (isNamespaceTerminating(error))
    log.debug('reconcile met the end of a namespace', { error })
  else log.warn('reconcile failed', { error, failures: o.failures })
}

export function reconcileHangs(log: Logger, afterMs: number): void {
  log.error('reconcile does not return, its slot is given to others', { afterMs })
}

export function leadershipTaken(log: Logger, identity: string): void {
  log.info('leading', { identity })
}

export function leadershipLost(log: Logger, holder: string): void {
  log.error('lease lost, ending at once', { holder })
}

export function leaseReleased(log: Logger): void {
  log.info('lease released')
}

export function leaseFailed(log: Logger, error: unknown): void {
  log.warn('lease could not be read or written', { error })
}

export function eventFailed(log: Logger, reason: string, error: unknown): void {
  if (isNamespaceTerminating(error)) log.debug('event of a namespace that ends', { reason, error })
  else log.warn('event not written', { reason, error })
}

export function probesListening(log: Logger, probes: number, metrics: number): void {
  log.info('probes and metrics are answered', { probes, metrics })
}

export function cachesSynced(log: Logger, objects: number, durationMs: number): void {
  log.info('caches synced', { objects, durationMs })
}

export function loopLate(
  log: Logger,
  late: { readonly p99Ms: number; readonly longestMs: number },
): void {
  log.warn('event loop is late', late)
}

export function probeFailed(log: Logger, error: unknown): void {
  log.warn('probe request failed', { error })
}

export function resourceServed(log: Logger, resource: string): void {
  log.info('server knows a resource that it lacked', { resource })
}

export function resourceUnknown(log: Logger, resource: string, error: unknown): void {
  log.warn('server did not say whether it knows a resource', { resource, error })
}

export function unhandledRejection(log: Logger, error: unknown): void {
  log.error('unhandled rejection, ending at once', { error })
}
