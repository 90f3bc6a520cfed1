import { ServeError } from '@tutti/errors'
import { emptyModelConfig, type ModelConfig, type ModelInput } from '@tutti/model-config'
import { decodeRestRequest, type RestInferRequest } from '../decode-request.ts'

/** A configuration of which only inputs and batching matter. */
export function modelConfig(inputs: readonly ModelInput[] = [], maxBatchSize = 0): ModelConfig {
  return {
    ...emptyModelConfig('m'),
    backend: 'python',
    max_batch_size: maxBatchSize,
    input: inputs,
  }
}

/** Decodes a body that is all JSON, given as text so that numbers are as written. */
export function decodeText(text: string): RestInferRequest {
  return decodeRestRequest({ body: Buffer.from(text), modelName: 'm', config: modelConfig() })
}

/** The ServeError that `work` throws; anything else it throws goes on. */
export function failureOf(work: () => unknown): ServeError {
  try {
    work()
  } catch (error) {
    if (error instanceof ServeError) return error
    throw error
  }
  throw new Error('nothing was thrown')
}
