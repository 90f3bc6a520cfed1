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
  /** Read for raw tensors only, which hold no JSON. */
  readonly config?: ModelConfig
  /** The inputs of the model that is to generate. */
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

/** The parsers of bodies that hold JSON, on whichever thread. What they return can be sent from one to the other. */
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

/** The bytes of JSON that a body holds, at most. */
export function jsonBytes({ body, headerLength }: BodySource): number {
  const announced = Number(headerLength ?? body.byteLength)
  return Number.isNaN(announced) ? body.byteLength : Math.min(announced, body.byteLength)
}
