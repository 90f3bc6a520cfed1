import { ServeError } from '@tutti/errors'
import type { InferRequest, StepResponse } from '@tutti/tensor'
import { collect, floats, requestContext } from '@tutti/tensor/testing'

export { collect, floats, toFloats } from '@tutti/tensor/testing'

/** Never aborts. */
export const quiet: { readonly signal: AbortSignal } = { signal: new AbortController().signal }

/** The config.pbtxt of a model that takes X and gives Y, without the name. */
export const oneToOne = `
  platform: "onnxruntime_onnx"
  input { name: "X" data_type: TYPE_FP32 dims: -1 }
  output { name: "Y" data_type: TYPE_FP32 dims: -1 }`

/** The declarations of an ensemble that takes IN and gives OUT, before its `ensemble_scheduling`. */
export const ensembleIo = `
  platform: "ensemble"
  input { name: "IN" data_type: TYPE_FP32 dims: -1 }
  output { name: "OUT" data_type: TYPE_FP32 dims: -1 }`

/** A step that gives the tensor `from` to a model of one input and calls its output `to`. */
export function step(
  model: string,
  from: string,
  to: string,
  { version = -1, names = ['X', 'Y'] }: { version?: number; names?: readonly string[] } = {},
): string {
  return `step { model_name: "${model}" model_version: ${version}
    input_map { key: "${names[0]}" value: "${from}" } output_map { key: "${names[1]}" value: "${to}" } }`
}

/** An ensemble of the models, one after the other. */
export function chain(...models: string[]): string {
  const tensors = models.map((_, i) => (i === models.length - 1 ? 'OUT' : `t${i}`))
  const steps = models.map((model, i) => step(model, tensors[i - 1] ?? 'IN', tensors[i] ?? ''))
  return `${ensembleIo} ensemble_scheduling { ${steps.join('\n')} }`
}

/** A request with one input. */
export function request(
  name: string,
  values: readonly number[] = [1],
  o: Partial<InferRequest> = {},
): InferRequest {
  const context = requestContext({ id: 'r' })
  return { context, inputs: [floats(name, values)], requestedOutputs: [], ...o }
}

/** How a request failed. @throws Error if it did not. */
export async function failure(
  answer: Promise<unknown> | AsyncIterable<StepResponse>,
): Promise<ServeError> {
  const answered = Symbol.asyncIterator in answer ? collect(answer) : answer
  const got = await answered.catch((error: unknown) => ServeError.from(error))
  if (got instanceof ServeError) return got
  throw new Error('expected an error')
}

/** Lets every microtask and immediate that is due run. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
