import { emptyModelConfig, type ModelConfig } from '@tutti/model-config'
import {
  type DeclaredInput,
  decodeGenerateRequest,
  decodeRestRequest,
  type GenerateRequest,
  type RestInferRequest,
} from '@tutti/protocol'
import type { LoadParameters } from '@tutti/serving'
import { parseLoadBody, parseReadyOnly, parseUnloadBody } from './control-bodies.ts'

/** A body as it came, with what is needed to read it. */
export interface BodySource {
  readonly body: Uint8Array
  /** The header length of an inference request, as the client wrote it. */
  readonly headerLength?: string | undefined
  readonly modelName?: string
  /** Config of the model. Only a body that is one raw tensor, without JSON, needs it. */
  readonly config?: ModelConfig
  /** Declared inputs of the model, for the kind `generate`. */
  readonly inputs?: readonly DeclaredInput[]
}

/** The contents of the body of each kind of call. */
export interface ParsedBodies {
  readonly infer: RestInferRequest
  readonly generate: GenerateRequest
  readonly load: LoadParameters
  readonly unload: boolean
  readonly index: boolean
}

export type BodyKind = keyof ParsedBodies

/** The parser of each kind of body. It runs on the main thread or on the JSON thread; its result can be sent between them. */
export const BODY_PARSERS: { readonly [K in BodyKind]: (source: BodySource) => ParsedBodies[K] } = {
  infer: ({ body, headerLength, modelName = '', config }) =>
    decodeRestRequest({
      body,
      modelName,
      config: config ?? emptyModelConfig(modelName),
      ...(headerLength === undefined ? {} : { headerLength }),
    }),
  generate: ({ body, inputs = [] }) => decodeGenerateRequest(body, inputs),
  load: ({ body }) => parseLoadBody(body),
  unload: ({ body }) => parseUnloadBody(body),
  index: ({ body }) => parseReadyOnly(body),
}

/** Counts the bytes of a body that may be JSON: as many as its header length says, at most all. */
export function jsonBytes({ body, headerLength }: BodySource): number {
  const announced = Number(headerLength ?? body.byteLength)
  return Number.isNaN(announced) ? body.byteLength : Math.min(announced, body.byteLength)
}
