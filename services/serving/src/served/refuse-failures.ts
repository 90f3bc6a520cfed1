import { ServeError } from '@tutti/errors'

/**
 * Triton's `--exit-on-error`: nothing is served if anything failed at the start.
 *
 * @param failures - by model.
 * @throws ServeError MODEL_LOAD_FAILED that lists what failed.
 */
export function refuseFailures(failures: ReadonlyMap<string, ServeError>): void {
  if (failures.size === 0) return
  const list = [...failures]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, { message }]) => `${name}: ${message.trimEnd()}`)
  throw new ServeError('MODEL_LOAD_FAILED', `failed to load all models: ${list.join('; ')}`)
}
