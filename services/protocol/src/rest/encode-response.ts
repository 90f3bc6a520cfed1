import { ServeError } from '@tutti/errors'
import type { NamedTensor, Parameters } from '@tutti/tensor'
import { HEADER_LENGTH_HEADER } from './decode-request.ts'
import { formatTensorData } from './format-tensor-data.ts'
import { toJsonText } from './json-writer.ts'

/** Inference response independent of its encoding. Outputs that a classification replaced are BYTES tensors already. */
export interface RestInferResponse {
  readonly modelName: string
  readonly modelVersion: string
  readonly id: string
  readonly parameters: Parameters
  readonly outputs: readonly NamedTensor[]
}

/** Body as parts in order, so that tensors are sent without a copy. */
export interface RestBody {
  readonly headers: Readonly<Record<string, string>>
  /** Parts in order. Some are views of the response's tensors, which must not change until they are sent. */
  readonly parts: readonly Uint8Array[]
  readonly byteLength: number
}

/**
 * Encodes a response: JSON, or JSON followed by the binary outputs in order. Each part takes a millisecond or two. The caller may
 * let time pass between two parts.
 *
 * @param isBinary - tells whether an output goes as binary data.
 * @param elsewhere - names of outputs whose bytes are not in the answer.
 * @throws ServeError INVALID_REQUEST if an output has no JSON form: FP16, BF16, bytes that are no UTF-8; RESPONSE_INVALID if an
 * output's bytes do not fit its shape.
 * @returns a generator that yields the parts of the JSON as they are made, and returns the whole body.
 */
export function* encodeRestResponse(
  response: RestInferResponse,
  isBinary: (output: string) => boolean,
  elsewhere: ReadonlySet<string> = new Set(),
): Generator<Uint8Array, RestBody> {
  const json: string[] = [responseHead(response)]
  const parts: Uint8Array[] = []
  const binary: Uint8Array[] = []
  const flush = (): Uint8Array => {
    const part = Buffer.from(json.join(''))
    parts.push(part)
    json.length = 0
    return part
  }
  for (const [index, output] of response.outputs.entries()) {
    if (index > 0) json.push(',')
    json.push(`{"name":${JSON.stringify(output.name)},"datatype":"${output.datatype}"`)
    json.push(`,"shape":[${output.shape.join(',')}]`)
    if (elsewhere.has(output.name)) {
      json.push('}')
      continue
    }
    if (isBinary(output.name)) {
      json.push(`,"parameters":{"binary_data_size":${output.data.byteLength}}}`)
      if (output.data.byteLength > 0) binary.push(output.data)
      continue
    }
    json.push(',"data":[')
    // A string per block keeps every string short and its bytes soon off the JavaScript heap.
    for (const block of formatTensorData(output)) {
      json.push(block)
      yield flush()
    }
    json.push(']}')
  }
  json.push(']}')
  yield flush()
  const headerLength = totalBytes(parts)
  if (binary.length === 0) {
    return { headers: { 'content-type': 'application/json' }, parts, byteLength: headerLength }
  }
  return {
    headers: {
      'content-type': 'application/octet-stream',
      [HEADER_LENGTH_HEADER]: String(headerLength),
    },
    parts: [...parts, ...binary],
    byteLength: headerLength + totalBytes(binary),
  }
}

export function totalBytes(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, part) => sum + part.byteLength, 0)
}

function responseHead(response: RestInferResponse): string {
  const { id, modelName, modelVersion, parameters } = response
  const idText = id === '' ? '' : `"id":${JSON.stringify(id)},`
  const names = `"model_name":${JSON.stringify(modelName)},"model_version":${JSON.stringify(modelVersion)}`
  const more =
    parameters.size === 0 ? '' : `,"parameters":${toJsonText(toPlainParameters(parameters))}`
  return `{${idText}${names}${more},"outputs":[`
}

/**
 * Converts parameters to values that `toJsonText` writes.
 *
 * @throws ServeError RESPONSE_INVALID for a double that JSON does not have.
 */
export function toPlainParameters(parameters: Parameters): Record<string, unknown> {
  const plain: [string, unknown][] = []
  for (const [key, parameter] of parameters) {
    if (parameter.kind === 'double' && !Number.isFinite(parameter.value)) {
      throw new ServeError(
        'RESPONSE_INVALID',
        `response parameter '${key}' is ${parameter.value}, which has no JSON form`,
      )
    }
    plain.push([key, parameter.value])
  }
  return Object.fromEntries(plain)
}
