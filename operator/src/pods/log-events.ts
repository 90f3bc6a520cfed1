import type { Logger } from '@tutti/chassis'
import type { ServeError } from '@tutti/errors'

export function routersCannotBeAsked(
  log: Logger,
  namespace: string,
  { pod, error }: { readonly pod: string; readonly error: ServeError },
): void {
  log.warn('router cannot be asked', { namespace, pod, error })
}

export function servedModelsChanged(log: Logger, namespace: string): void {
  log.debug('routers serve other models than before', { namespace })
}
