import type { ExecuteOptions, InferRequest, StepResponse } from '@tutti/tensor'
import type { ResolvedModel } from './inference-backend.ts'

/**
 * Executes a request of a model that is not decoupled, and drops responses after the first one.
 *
 * @param read - converts the response, whose bytes are lent until `read` returns.
 * @returns the result of `read`; rejects with the model's error, or with what `read` throws.
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
