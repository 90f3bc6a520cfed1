import type { ModelConfig } from '@tutti/model-config'
import type { StepRequest } from '@tutti/tensor'

/**
 * Compiles what requests must have in common to share a batch: equal shapes (without the batch dimension) of inputs with a
 * variable dimension that are not ragged, and the same set of inputs if some are optional.
 *
 * @returns a function that gives equal text for requests that fit; always '' where nothing has to be compared.
 */
export function compileBatchKey(config: ModelConfig): (request: StepRequest) => string {
  const variable = new Set(
    config.input
      .filter((input) => !input.allow_ragged_batch && input.dims.includes(-1))
      .map((input) => input.name),
  )
  const hasOptional = config.input.some((input) => input.optional)
  if (config.max_batch_size <= 1 || (variable.size === 0 && !hasOptional)) return () => ''
  // Clients may send inputs in any order, so the key follows the order of the config.
  const compared = config.input
    .map((input) => input.name)
    .filter((name) => hasOptional || variable.has(name))
  return (request) => {
    let key = ''
    for (const name of compared) {
      const input = request.inputs.find((tensor) => tensor.name === name)
      if (input === undefined) key += '-;'
      else key += variable.has(name) ? `${input.shape.slice(1).join(',')};` : '+;'
    }
    return key
  }
}
