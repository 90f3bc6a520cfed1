import { ServeError } from '@tutti/errors'
import type { InferenceBackend } from '../backend/inference-backend.ts'

export type SettingsAction = 'log settings' | 'trace settings'

/** Where what the server does may be read and changed. @throws ServeError UNSUPPORTED for listeners to the outside. */
export function requireSettings<T>(settings: T | undefined, what: SettingsAction): T {
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
  what: SettingsAction,
): void {
  if (control?.refusal === undefined) return
  const text = `${what} of routers and steps are those of their flags; change these`
  throw new ServeError('UNSUPPORTED', text)
}

/** @param model - '' for all. @throws ServeError INVALID_REQUEST, as Triton, for one that is unknown or has no version ready. */
export function requireTracedModel(
  backend: Pick<InferenceBackend, 'resolve'>,
  model: string,
): void {
  if (model === '') return
  try {
    backend.resolve(model, '')
  } catch (cause) {
    throw new ServeError('INVALID_REQUEST', `Request for unknown model : ${model}`, { cause })
  }
}
