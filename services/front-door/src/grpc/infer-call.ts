import { ServeError } from '@tutti/errors'
import { decodeInferRequest, type InferRequestMessage } from '@tutti/protocol'
import type {
  InferenceBackend,
  InferRequest,
  InferResponse,
  ResolvedModel,
} from '../inference-backend.ts'
import {
  classifyOutputs,
  readInputs,
  readRequestedOutputs,
  readRequestParameters,
} from '../request/read-request.ts'
import type { ServerCall } from './server-call.ts'

/** A request that was read and resolved, but not yet executed. */
export interface PreparedInfer {
  readonly model: ResolvedModel
  readonly request: InferRequest
  readonly isEmptyFinalWanted: boolean
}

/** @throws ServeError SERVER_NOT_READY while the process shuts down. */
export function requireLive(backend: InferenceBackend): void {
  if (!backend.isLive()) throw new ServeError('SERVER_NOT_READY', 'Server not ready')
}

/** Reads a request against its model, in the order of triton-semantics 4.6. */
export function prepareInfer(
  message: InferRequestMessage,
  model: ResolvedModel,
  maxBytes: number,
): PreparedInfer {
  const { context, isEmptyFinalWanted } = readRequestParameters(message.id, message.parameters)
  const outputs = readRequestedOutputs(message.outputs)
  const inputs = readInputs({
    id: message.id,
    modelName: model.name,
    config: model.config,
    inputs: message.inputs,
    rawContents: message.rawInputContents,
    maxBytes,
  })
  return { model, request: { context, inputs, outputs }, isEmptyFinalWanted }
}

/** The response as the client gets it: with classes where classes were asked for. */
export function toAnswer(
  response: InferResponse,
  { model, request }: PreparedInfer,
): InferResponse {
  const outputs = classifyOutputs(response.outputs, request.outputs, model)
  return outputs === response.outputs ? response : { ...response, outputs }
}

/** The one response of a model that is not decoupled. */
export async function onlyResponse(
  responses: AsyncIterable<InferResponse>,
): Promise<InferResponse> {
  const iterator = responses[Symbol.asyncIterator]()
  const { done, value } = await iterator.next()
  // What a model gives beyond the first is dropped, and nobody waits for that or hears how it ends.
  iterator.return?.().catch(() => {})
  if (done !== true) return value
  throw new ServeError('RESPONSE_INVALID', 'the model gave no response, want one')
}

/**
 * ModelInfer, from the encoded message to the response as the client gets it. A call that the door let in is answered also if the process has begun to
 * shut down while its message was being read.
 */
export async function inferOnce(
  bytes: Buffer,
  call: ServerCall,
  maxBytes: number,
): Promise<InferResponse> {
  const message = decodeInferRequest(bytes)
  const model = call.backend.resolve(message.modelName, message.modelVersion)
  if (model.isDecoupled) {
    throw new ServeError(
      'UNSUPPORTED',
      "ModelInfer RPC doesn't support models with decoupled transaction policy",
      { details: { model: model.name } },
    )
  }
  const prepared = prepareInfer(message, model, maxBytes)
  const response = await onlyResponse(model.infer(prepared.request, call.context))
  return toAnswer(response, prepared)
}
