import type { Logger } from '@tutti/chassis'

export function replicasDecided(
  log: Logger,
  o: { readonly key: string; readonly from: number; readonly to: number },
): void {
  log.info('replicas decided', o)
}

export function loadUnknown(
  log: Logger,
  o: { readonly key: string; readonly error: unknown },
): void {
  log.debug('load of a pod is unknown', o)
}

export function demandUnknown(
  log: Logger,
  o: { readonly pod: string; readonly namespace: string; readonly error: unknown },
): void {
  log.debug('demand of a router is unknown', o)
}
