import type { ExecuteOptions, InferRequest, StepResponse } from '@tutti/tensor'
import type { ResolvedModel } from './inference-backend.ts'

/**
 * Executes a request of a model that is not decoupled. What the model gives beyond its first response is dropped.
 *
 * @param read - takes from the response what is wanted of it. Its bytes are lent until it returns.
 */
export function onlyResponse<T>(
  model: ResolvedModel,
  request: InferRequest,
  context: ExecuteOptions,
  read: (response: StepResponse) => T | Promise<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const send = (response: StepResponse): void => {
      try {
        resolve(read(response))
      } catch (error) {
        reject(error)
      }
    }
    model.execute(request, { send, fail: reject }, context)
  })
}
