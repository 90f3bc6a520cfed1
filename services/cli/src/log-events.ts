import type { Logger } from '@tutti/chassis'
import type { ServeError } from '@tutti/errors'

/** The repositories could not be looked at for changes; the next look tries again. */
export function repositoryUnreadable(log: Logger, error: ServeError): void {
  log.warn('model repository could not be polled', { reason: error.reason, error: error.message })
}
