import { elementCount } from '@tutti/tensor'
import {
  type RestBody,
  type RestInferResponse,
  toPlainParameters,
  totalBytes,
} from './encode-response.ts'
import { formatTensorData } from './format-tensor-data.ts'
import { toJsonText } from './json-writer.ts'

/**
 * Encodes a response of `generate` as one flat object with sorted keys: model, id, parameters and outputs side by side. An output
 * of one element is that element, any other a flat array. The caller may let time pass between two parts.
 *
 * @throws ServeError as `encodeRestResponse`.
 * @returns a generator that yields the parts as they are made, and returns the whole body.
 */
export function* encodeGenerateResponse(
  response: RestInferResponse,
): Generator<Uint8Array, RestBody> {
  const { id, modelName, modelVersion, parameters, outputs } = response
  // As in Triton, an output does not hide what is the response's own.
  const members = new Map<string, Iterable<string>>(
    outputs.map((output) => {
      const isOne = elementCount(output.shape) === 1
      return [output.name, isOne ? formatTensorData(output) : listOf(formatTensorData(output))]
    }),
  )
  const own = {
    ...toPlainParameters(parameters),
    ...(id === '' ? {} : { id }),
    model_name: modelName,
    model_version: modelVersion,
  }
  for (const [name, value] of Object.entries(own)) members.set(name, [toJsonText(value)])
  const parts: Uint8Array[] = []
  let separator = '{'
  for (const [name, value] of [...members].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    let json = `${separator}${JSON.stringify(name)}:`
    separator = ','
    for (const block of value) {
      const part = Buffer.from(json + block)
      json = ''
      parts.push(part)
      yield part
    }
  }
  const end = Buffer.from('}')
  parts.push(end)
  yield end
  const headers = { 'content-type': 'application/json' }
  return { headers, parts, byteLength: totalBytes(parts) }
}

function* listOf(blocks: Iterable<string>): Generator<string> {
  yield '['
  yield* blocks
  yield ']'
}
