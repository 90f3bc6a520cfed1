import type { Logger } from '@tutti/chassis'

/** The namespace has no Model and no Ensemble any more. */
export function routerRemoved(log: Logger): void {
  log.info('router and credential removed')
}
