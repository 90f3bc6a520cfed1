import { type RestAnswer, type RestCallOptions, restCall } from './rest-call.ts'
import type { Target } from './serving.ts'
import type { Tensor } from './tensors.ts'

/** Header with the length of the JSON part where binary data follow it. */
export const JSON_LENGTH = 'inference-header-content-length'

/** POSTs tensors to `.../infer` with the binary extension, and asks for binary outputs. */
export function restInfer(
  target: Target,
  model: string,
  inputs: readonly Tensor[],
  o: Omit<RestCallOptions, 'body'> = {},
): Promise<RestAnswer> {
  const { body, jsonBytes } = restBody(inputs)
  const headers = { [JSON_LENGTH]: String(jsonBytes), ...o.headers }
  return restCall(target.httpPort, 'POST', inferPath(model), { ...o, body, headers })
}

export function inferPath(model: string): string {
  return `/v2/models/${encodeURIComponent(model)}/infer`
}

/** A request body with the binary extension. */
export function restBody(inputs: readonly Tensor[]): { body: Buffer; jsonBytes: number } {
  const json = Buffer.from(
    JSON.stringify({
      parameters: { binary_data_output: true },
      inputs: inputs.map(({ name, datatype, shape, data }) => ({
        name,
        datatype,
        shape,
        parameters: { binary_data_size: data.byteLength },
      })),
    }),
  )
  return {
    body: Buffer.concat([json, ...inputs.map(({ data }) => data)]),
    jsonBytes: json.byteLength,
  }
}

interface OutputHeader {
  readonly name: string
  readonly parameters: { readonly binary_data_size: number }
}

/** The bytes of each output of a binary answer. @throws Error if the answer is no success. */
export function restOutputs(answer: RestAnswer): ReadonlyMap<string, Buffer> {
  const length = Number(answer.headers[JSON_LENGTH] ?? answer.body.byteLength)
  const text = answer.body.subarray(0, length).toString()
  if (answer.status !== 200) throw new Error(`HTTP ${answer.status}: ${text}`)
  const { outputs }: { readonly outputs: readonly OutputHeader[] } = JSON.parse(text)
  const found = new Map<string, Buffer>()
  let at = length
  for (const { name, parameters } of outputs) {
    found.set(name, answer.body.subarray(at, at + parameters.binary_data_size))
    at += parameters.binary_data_size
  }
  return found
}
