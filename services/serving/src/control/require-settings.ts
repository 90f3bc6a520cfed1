import { ServeError } from '@tutti/errors'
import type { InferenceBackend } from '../backend/inference-backend.ts'

export type SettingsAction = 'log settings' | 'trace settings'

/**
 * Checks that the server offers settings, and returns them.
 *
 * @throws ServeError UNSUPPORTED if not, as listeners to the outside.
 */
export function requireSettings<T>(settings: T | undefined, what: SettingsAction): T {
  if (settings !== undefined) return settings
  throw new ServeError('UNSUPPORTED', `${what} are not offered by this server`)
}

/**
 * Refuses a change of settings where clients may not load models: over several processes and on Kubernetes. The change would
 * reach only the one process that got the call.
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

/**
 * Checks the model of trace settings.
 *
 * @param model - '' for all.
 * @throws ServeError INVALID_REQUEST, as Triton, for a model that is unknown or has no version ready.
 */
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
