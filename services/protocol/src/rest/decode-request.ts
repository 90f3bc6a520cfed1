import { ServeError } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'
import type { RequestContext } from '@tutti/tensor'
import { decodeInputs, type RestInput } from './decode-inputs.ts'
import { decodeOutputs, type RestRequestedOutput } from './decode-outputs.ts'
import { asString, member } from './json-fields.ts'
import { parseJson } from './json-text.ts'
import { decodeRawInput } from './raw-input.ts'
import { parseRequestParameters, writtenParameters } from './request-parameters.ts'

/** Header with the length of the JSON part when binary data follows it, in requests and responses. */
export const HEADER_LENGTH_HEADER = 'inference-header-content-length'

/** Body of a request, with all that is needed to decode it. */
export interface RestInferBody {
  /** Bytes of the body; viewed, not copied: binary inputs are views into it. */
  readonly body: Uint8Array
  /** Value of `Inference-Header-Content-Length` as the client wrote it; absent if the body is all JSON. */
  readonly headerLength?: string
  readonly modelName: string
  /** Configuration of the model. Only the raw form needs it, for name, datatype and shape of the one input. */
  readonly config: ModelConfig
}

/** Inference request independent of its encoding, with the wanted form of its outputs. */
export interface RestInferRequest {
  readonly context: RequestContext
  readonly inputs: readonly RestInput[]
  /** Requested outputs, without duplicates; empty means all. */
  readonly outputs: readonly RestRequestedOutput[]
  /** True if outputs that the request does not list are wanted as binary data. */
  readonly isBinaryOutput: boolean
}

/**
 * Decodes the body of `POST .../infer`: JSON, JSON followed by binary data, or (header length 0, or no body) one raw tensor.
 *
 * @throws ServeError with Triton's text; what Triton's JSON reader refuses has code INTERNAL (triton-semantics 9.15).
 */
export function decodeRestRequest(request: RestInferBody): RestInferRequest {
  const headerLength = parseHeaderLength(request.headerLength, request.body.byteLength)
  // An empty body too, whatever the header says, as measured (triton-semantics 9.24).
  const isRaw = headerLength === 0 && request.headerLength !== undefined
  if (isRaw || request.body.byteLength === 0) return decodeRaw(request)
  const document = parseJson(request.body.subarray(0, headerLength))
  const idMember = member(document.value, 'id')
  const id = idMember === undefined ? '' : asString(idMember, "Unable to parse 'id'")
  const { context, isBinaryOutput } = parseRequestParameters(id, writtenParameters(document))
  const inputs = decodeInputs({
    document,
    id,
    modelName: request.modelName,
    binary: request.body.subarray(headerLength),
  })
  return { context, inputs, outputs: decodeOutputs(document.value, isBinaryOutput), isBinaryOutput }
}

function decodeRaw(request: RestInferBody): RestInferRequest {
  const { context } = parseRequestParameters('', undefined)
  return {
    context,
    inputs: [decodeRawInput(request.body, request.modelName, request.config)],
    outputs: [],
    isBinaryOutput: true,
  }
}

function parseHeaderLength(written: string | undefined, bodyBytes: number): number {
  if (written === undefined) return bodyBytes
  // As C's `atoi`: digits count up to what is none, and no digits are 0.
  const length = Number(/^\s*[+-]?\d+/.exec(written)?.[0] ?? 0)
  if (length >= 0 && length <= bodyBytes) return length
  throw new ServeError(
    'INVALID_REQUEST',
    `inference header size should be in range (0, ${bodyBytes}), got: ${written}`,
  )
}
