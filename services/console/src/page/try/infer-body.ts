import { isDatatype, type NamedTensor } from '@tutti/tensor'
import { z } from 'zod'
import type { RequestInput } from './request-input.ts'

/** Names the length of the JSON before the bytes. */
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

export interface Answer {
  readonly modelVersion: string
  readonly outputs: readonly NamedTensor[]
}

/** The JSON of a request; the bytes of its inputs follow it in their order. */
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

/** The bytes that follow the JSON. */
export function inferBytes(inputs: readonly RequestInput[]): readonly Uint8Array[] {
  return inputs.flatMap(({ content }) => (content.kind === 'bytes' ? [content.data] : []))
}

/**
 * Reads an answer with binary outputs.
 *
 * @param headerLength - of the header; null if there is none.
 * @returns views of `body`.
 * @throws Error if it is not of the v2 protocol.
 */
export function parseAnswer(body: Uint8Array, headerLength: string | null): Answer {
  const jsonBytes = Number(headerLength ?? body.byteLength)
  const json: unknown = JSON.parse(new TextDecoder().decode(body.subarray(0, jsonBytes)))
  return parseBody(json, body.subarray(jsonBytes))
}

/** As `parseAnswer`. @param bytes - what follows the JSON. */
export function parseBody(json: unknown, bytes: Uint8Array): Answer {
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
