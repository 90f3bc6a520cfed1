import { ServeError } from '@tutti/errors'

/** Makes the error of a load that took longer than its Model allows. @param ms - the Model's `timeouts.load`. */
export function loadTimeout(ms: number): ServeError {
  const text = `the model was not loaded after ${ms / 1000} s (timeouts.load)`
  return new ServeError('MODEL_LOAD_FAILED', text)
}
