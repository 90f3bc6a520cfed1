import { ServeError } from '@tutti/errors'
import type { InferenceBackend } from '../inference-backend.ts'

/** Where what the server does may be read and changed. @throws ServeError UNSUPPORTED for listeners to the outside. */
export function requireSettings<T>(
  settings: T | undefined,
  what: 'log settings' | 'trace settings',
): T {
  if (settings !== undefined) return settings
  throw new ServeError('UNSUPPORTED', `${what} are not offered by this server`)
}

/**
 * Over several processes and on Kubernetes clients change a server as little as they load models: the settings of one process
 * among many would be those of whichever got the call.
 *
 * @throws ServeError UNSUPPORTED
 */
export function requireOneProcess(
  { control }: Pick<InferenceBackend, 'control'>,
  what: 'log settings' | 'trace settings',
): void {
  if (control?.refusal === undefined) return
  const text = `${what} of routers and steps are those of their flags; change these`
  throw new ServeError('UNSUPPORTED', text)
}
