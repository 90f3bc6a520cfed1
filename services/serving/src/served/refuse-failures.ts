import { ServeError } from '@tutti/errors'

/**
 * Refuses to serve anything if a model failed at the start, as Triton's `--exit-on-error`.
 *
 * @param failures - the errors by model.
 * @throws ServeError MODEL_LOAD_FAILED that lists what failed.
 */
export function refuseFailures(failures: ReadonlyMap<string, ServeError>): void {
  if (failures.size === 0) return
  const list = [...failures]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, { message }]) => `${name}: ${message.trimEnd()}`)
  throw new ServeError('MODEL_LOAD_FAILED', `failed to load all models: ${list.join('; ')}`)
}
