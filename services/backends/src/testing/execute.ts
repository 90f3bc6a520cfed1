import type { NamedTensor, StepRequest, StepResponse } from '@tutti/tensor'
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
): Promise<readonly StepResponse[]> {
  const responses = new Map<number, StepResponse>()
  const sink = {
    send: (position: number, response: StepResponse) => {
      if (responses.has(position)) throw new Error(`two responses for request ${position}`)
      responses.set(position, response)
    },
  }
  const { signal } = new AbortController()
  const times = await model.execute(requests, sink, { instance, signal })
  for (const ns of Object.values(times)) {
    if (!(Number(ns) >= 0)) throw new Error(`a time ran backwards: ${String(ns)}`)
  }
  return requests.map((_, position) => {
    const response = responses.get(position)
    if (response === undefined) throw new Error(`no response for request ${position}`)
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
