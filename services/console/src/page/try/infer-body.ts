import { isDatatype, type NamedTensor } from '@tutti/tensor'
import { z } from 'zod'
import type { RequestInput } from './request-input.ts'

/** Header with the length of the JSON, which comes before the binary data. */
export const HEADER_LENGTH = 'inference-header-content-length'

const Response = z.object({
  model_name: z.string(),
  model_version: z.string().default(''),
  outputs: z.array(
    z.object({
      name: z.string(),
      datatype: z.string(),
      shape: z.array(z.number()),
      parameters: z.object({ binary_data_size: z.int().min(0) }),
    }),
  ),
})

export interface InferAnswer {
  readonly modelVersion: string
  readonly outputs: readonly NamedTensor[]
}

/** Writes the JSON of a request. The bytes of `inferBytes` follow it in the body. */
export function inferJson(inputs: readonly RequestInput[], isBinaryAnswer: boolean): string {
  const items = inputs.map(({ name, datatype, shape, content }) => {
    const head = JSON.stringify({ name, datatype, shape }).slice(0, -1)
    return content.kind === 'json'
      ? `${head},"data":${content.text}}`
      : `${head},"parameters":{"binary_data_size":${content.data.byteLength}}}`
  })
  const rest = isBinaryAnswer ? ',"parameters":{"binary_data_output":true}' : ''
  return `{"inputs":[${items.join(',')}]${rest}}`
}

/** Lists the binary data of the inputs, in the order in which it follows the JSON. */
export function inferBytes(inputs: readonly RequestInput[]): readonly Uint8Array[] {
  return inputs.flatMap(({ content }) => (content.kind === 'bytes' ? [content.data] : []))
}

/**
 * Reads an answer with binary outputs.
 *
 * @param headerLength - the value of the header HEADER_LENGTH; null if there is none.
 * @returns views of `body`.
 * @throws Error if it is not of the v2 protocol.
 */
export function parseAnswer(body: Uint8Array, headerLength: string | null): InferAnswer {
  const jsonBytes = Number(headerLength ?? body.byteLength)
  const json: unknown = JSON.parse(new TextDecoder().decode(body.subarray(0, jsonBytes)))
  return parseAnswerParts(json, body.subarray(jsonBytes))
}

/** Reads an answer as `parseAnswer`, from its two parts. @param bytes - the binary data after the JSON; viewed. */
export function parseAnswerParts(json: unknown, bytes: Uint8Array): InferAnswer {
  const { model_version: modelVersion, outputs } = Response.parse(json)
  let at = 0
  return {
    modelVersion,
    outputs: outputs.map(({ name, datatype, shape, parameters }) => {
      const data = bytes.subarray(at, (at += parameters.binary_data_size))
      if (!isDatatype(datatype) || data.byteLength !== parameters.binary_data_size) {
        throw new Error(`output '${name}' of ${datatype} has ${data.byteLength} bytes`)
      }
      return { name, datatype, shape, data }
    }),
  }
}
