import type { NamedTensor, Parameters } from '@tutti/tensor'
import type { InferRequest, InferResponse } from '../inference-backend.ts'

/** Makes the responses to one request, from what a model or an ensemble gives. */
export function toAnswer(
  modelName: string,
  version: number,
  request: InferRequest,
): (outputs: readonly NamedTensor[], parameters: Parameters, final: boolean) => InferResponse {
  const modelVersion = String(version)
  const { id } = request.context
  return (outputs, parameters, final) => ({
    modelName,
    modelVersion,
    id,
    parameters,
    outputs,
    final,
  })
}

/** The names that a request asks for; a duplicate is accepted and answered once, as measured on Triton 2.51. */
export function requestedNames(request: InferRequest): readonly string[] {
  const names = request.outputs.map((output) => output.name)
  return names.length < 2 ? names : [...new Set(names)]
}
