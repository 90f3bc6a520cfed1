import { ServeError } from '@tutti/errors'
import { applyOutputReshape, type ModelConfig } from '@tutti/model-config'
import type { NamedTensor, StepRequest } from '@tutti/tensor'

/** Turns what a model returned into what the client gets. @throws ServeError RESPONSE_INVALID. */
export type OutputContract = (
  outputs: readonly NamedTensor[],
  request: StepRequest,
) => readonly NamedTensor[]

/**
 * Compiles the rules for a model's outputs: only declared ones may come back, only requested ones are passed on, and a
 * `reshape` gives the shape that clients see.
 */
export function compileOutputContract(config: ModelConfig): OutputContract {
  const declared = new Map(config.output.map((output) => [output.name, output]))
  const hasReshape = config.output.some((output) => output.reshape !== undefined)
  return (outputs, request) => {
    for (const { name } of outputs) {
      if (!declared.has(name)) {
        throw new ServeError(
          'RESPONSE_INVALID',
          `unexpected inference output '${name}' for model '${config.name}'`,
          // Triton's code for it, although the fault is the model's.
          { code: 'INVALID_ARGUMENT' },
        )
      }
    }
    const wanted = request.requestedOutputs
    const kept = wanted.length === 0 ? outputs : outputs.filter((o) => wanted.includes(o.name))
    if (!hasReshape) return kept
    return kept.map((output) => applyOutputReshape(config, output, request.batchSize))
  }
}
