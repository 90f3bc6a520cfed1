import type { NamedTensor, StepRequest, StepResponse } from '@tutti/tensor'
import { type RecordedResponse, RecordedResponses } from '@tutti/tensor/testing'
import type { LoadedModel } from '../engine.ts'

/**
 * Executes requests together.
 *
 * @returns each request's one response.
 * @throws Error if a request gets none or two, or if a time runs backwards.
 */
export async function executeOnce(
  model: LoadedModel,
  requests: readonly StepRequest[],
  instance = 0,
): Promise<readonly RecordedResponse[]> {
  const batch = requests.map((request) => ({ request, sink: new RecordedResponses() }))
  const { signal } = new AbortController()
  const times = await model.execute(batch, { instance, signal })
  for (const ns of Object.values(times)) {
    if (!(Number(ns) >= 0)) throw new Error(`a time ran backwards: ${String(ns)}`)
  }
  return batch.map(({ sink: { responses } }, position) => {
    const [response, ...more] = responses
    if (response === undefined) throw new Error(`no response for request ${position}`)
    if (more.length > 0) throw new Error(`${more.length + 1} responses for request ${position}`)
    return response
  })
}

/** An FP32 tensor. */
export function fp32Tensor(
  name: string,
  shape: readonly number[],
  values: readonly number[],
): NamedTensor {
  const data = new Uint8Array(Float32Array.from(values).buffer)
  return { name, datatype: 'FP32', shape, data }
}

/** The values of an FP32 output; empty if it is not there. */
export function fp32Values(response: StepResponse | undefined, name: string): number[] {
  const data = response?.outputs.find((output) => output.name === name)?.data
  // Copied, because a view into a batch need not be aligned.
  return data === undefined ? [] : [...new Float32Array(new Uint8Array(data).buffer)]
}
