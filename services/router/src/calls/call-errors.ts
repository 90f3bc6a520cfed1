import { ServeError } from '@tutti/errors'
import type { InferRequest, StepResponse } from '@tutti/tensor'
import type { ResolvedEntry } from '../catalog/catalog.ts'

/**
 * Checks the outputs of a response. The step has checked its engine's outputs, so a wrong one is a fault of the step or of the
 * transport.
 */
export function checkOutputs(
  o: {
    readonly target: ResolvedEntry
    readonly request: Pick<InferRequest, 'requestedOutputs'>
  },
  { outputs }: Pick<StepResponse, 'outputs'>,
): ServeError | undefined {
  const { target, request } = o
  const wanted = request.requestedOutputs.length > 0 ? request.requestedOutputs : target.outputs
  for (const [i, { name }] of outputs.entries()) {
    const isTwice = outputs.findIndex((other) => other.name === name) < i
    if (isTwice) return outputError(target, name, undefined)
    if (!wanted.includes(name)) return outputError(target, name, wanted)
  }
  return undefined
}

/** Makes the error for an output of a step that is not wanted. @param wanted - undefined if it came twice. */
export function outputError(
  { entry }: Pick<ResolvedEntry, 'entry'>,
  output: string,
  wanted: readonly string[] | undefined,
): ServeError {
  const problem =
    wanted === undefined ? `"${output}" twice` : `"${output}", want ${wanted.join(', ')}`
  return new ServeError('RESPONSE_INVALID', `model '${entry.name}': got output ${problem}`)
}
