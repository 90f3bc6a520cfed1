import { ServeError } from '@tutti/errors'
import type { InferenceBackend } from '../inference-backend.ts'

/** Triton's `--exit-on-error`: nothing is served if anything failed. @throws ServeError MODEL_LOAD_FAILED that lists what did. */
export function refuseFailures(backend: Pick<InferenceBackend, 'repositoryIndex'>): void {
  const failed = backend.repositoryIndex(false).filter((entry) => entry.state !== 'READY')
  if (failed.length === 0) return
  const list = failed.map(({ name, version, reason }) => `${name} ${version}: ${reason}`)
  throw new ServeError('MODEL_LOAD_FAILED', `failed to load all models: ${list.join('; ')}`)
}
