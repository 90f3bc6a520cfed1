import { ServeError } from '@tutti/errors'
import {
  decodeInferRequest,
  type InferRequestMessage,
  type InferResponseParts,
} from '@tutti/protocol'
import type { InferRequest, ResponseSink, StepResponse } from '@tutti/tensor'
import type { InferenceBackend, RequestedOutput, ResolvedModel } from '../inference-backend.ts'
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
  readonly outputs: readonly RequestedOutput[]
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
  const request = { context, inputs, requestedOutputs: outputs.map(({ name }) => name) }
  return { model, request, outputs, isEmptyFinalWanted }
}

/** The response as the client gets it: with classes where classes were asked for. */
export function toAnswer(
  { outputs, parameters }: StepResponse,
  prepared: PreparedInfer,
): InferResponseParts {
  const { model, request } = prepared
  return {
    modelName: model.name,
    modelVersion: String(model.version),
    id: request.context.id,
    parameters,
    outputs: classifyOutputs(outputs, prepared.outputs, model),
  }
}

/** Executes a request of a model that is not decoupled. What the model gives beyond its first response is dropped. */
export function executeOnce(
  { model, request }: PreparedInfer,
  context: ServerCall['context'],
): Promise<StepResponse> {
  return new Promise((resolve, reject) => {
    const sink: ResponseSink = { send: resolve, fail: reject }
    model.execute(request, sink, context)
  })
}

/**
 * ModelInfer, from the encoded message to the response as the client gets it. A call that the server let in is answered also if
 * the process has begun to shut down while its message was being read.
 */
export async function inferOnce(
  bytes: Buffer,
  call: ServerCall,
  maxBytes: number,
): Promise<InferResponseParts> {
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
  return toAnswer(await executeOnce(prepared, call.context), prepared)
}
