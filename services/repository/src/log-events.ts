import type { Logger } from '@tutti/chassis'
import type { ServeError } from '@tutti/errors'

/** Logs that the repositories could not be read for changes. The next poll tries again. */
export function repositoryUnreadable(log: Logger, error: ServeError): void {
  log.warn('model repository could not be polled', { reason: error.reason, error: error.message })
}
