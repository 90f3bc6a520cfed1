import { ServeError } from '@tutti/errors'

/** Why a load ends that a Model bounds. @param ms - its `timeouts.load`. */
export function loadTimeout(ms: number): ServeError {
  const text = `the model was not loaded after ${ms / 1000} s (timeouts.load)`
  return new ServeError('MODEL_LOAD_FAILED', text)
}
