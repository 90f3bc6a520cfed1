import { ServeError } from '@tutti/errors'
import {
  decodeInferRequest,
  encodeInferResponseFrame,
  type InferRequestMessage,
  type InferResponseParts,
} from '@tutti/protocol'
import {
  EMPTY_CONTEXT,
  type InferRequest,
  isDatatype,
  type NamedTensor,
  type ResponseSink,
  type StepResponse,
} from '@tutti/tensor'
import type { RequestedOutput, ResolvedModel } from '../inference-backend.ts'
import { toClasses } from '../request/classify.ts'
import {
  decoupledModel,
  duplicateInput,
  type InputSource,
  missingData,
  typedData,
  unknownDatatype,
} from '../request/input-refusals.ts'
import { readOutputParameters, refuseSharedMemory } from '../request/output-parameters.ts'
import { readGivenParameters } from '../request/request-parameters.ts'
import type { ServerCall } from './server-call.ts'

/** A request that was read and resolved, but not yet executed. */
export interface PreparedInfer {
  readonly model: ResolvedModel
  readonly request: InferRequest
  readonly outputs: readonly RequestedOutput[]
  /** On a stream: an empty final response is delivered rather than swallowed. */
  readonly isEmptyFinalWanted: boolean
}

/**
 * Serves a ModelInfer, from the encoded message to the frame of the response. A call that the server has accepted is answered
 * also if the process has begun to shut down while its message was being read.
 */
export function serveInfer(call: ServerCall): void {
  call.readOne(inferOnce)
}

function inferOnce(bytes: Buffer, call: ServerCall): void {
  let prepared: PreparedInfer
  try {
    const message = decodeInferRequest(bytes)
    const model = call.backend.resolve(message.modelName, message.modelVersion)
    if (model.isDecoupled) throw decoupledModel(model.name)
    prepared = prepareInfer(message, model, call.maxMessageBytes)
  } catch (error) {
    call.refuse(ServeError.from(error))
    return
  }
  prepared.model.execute(prepared.request, new OnlyAnswer(call, prepared), call.context)
}

/** Reads a request against its model, in the order of triton-semantics 4.6. @throws ServeError with Triton's text. */
export function prepareInfer(
  message: InferRequestMessage,
  model: ResolvedModel,
  maxBytes: number,
): PreparedInfer {
  const { id, parameters } = message
  const { context, isEmptyFinalWanted } =
    parameters.size === 0
      ? { context: { ...EMPTY_CONTEXT, id }, isEmptyFinalWanted: false }
      : readGivenParameters(id, parameters)
  const outputs = message.outputs.length === 0 ? [] : readRequestedOutputs(message.outputs)
  const inputs = readInputs({
    id,
    modelName: model.name,
    config: model.config,
    inputs: message.inputs,
    rawContents: message.rawInputContents,
    maxBytes,
  })
  const request = { context, inputs, requestedOutputs: outputs.map(({ name }) => name) }
  return { model, request, outputs, isEmptyFinalWanted }
}

/** Reads which outputs are wanted and how. A name that comes twice counts once, as in Triton 2.51. */
function readRequestedOutputs(outputs: InferRequestMessage['outputs']): readonly RequestedOutput[] {
  const wanted = new Map<string, RequestedOutput>()
  for (const { name, parameters } of outputs) {
    const classification = parameters.size === 0 ? 0 : readOutputParameters(name, parameters)
    if (!wanted.has(name)) wanted.set(name, { name, classification })
  }
  return [...wanted.values()]
}

/**
 * Gives each input its bytes, by the rules of triton-semantics 4.7: raw entries in order, or typed contents turned into
 * raw ones. Raw data are views into the message.
 */
function readInputs(source: InputSource): readonly NamedTensor[] {
  if (source.inputs.length > 1) refuseDuplicates(source)
  let entry = 0
  const tensors: NamedTensor[] = []
  let invalid: string | undefined
  for (const input of source.inputs) {
    const { name, datatype, shape, parameters, contents } = input
    if (parameters.size > 0) refuseSharedMemory(name, parameters)
    const data =
      contents === undefined ? source.rawContents[entry] : typedData(source, input, contents)
    if (data === undefined) throw missingData(source, name)
    entry += 1
    if (isDatatype(datatype)) tensors.push({ name, datatype, shape, data })
    else invalid ??= name
  }
  if (invalid !== undefined) throw unknownDatatype(source, invalid)
  return tensors
}

function refuseDuplicates(source: InputSource): void {
  const names = new Set<string>()
  for (const { name } of source.inputs) {
    if (names.has(name)) throw duplicateInput(source, name)
    names.add(name)
  }
}

/** Answers a call with the first response of a model; what the model gives beyond it is dropped. */
class OnlyAnswer implements ResponseSink {
  readonly #call: ServerCall
  readonly #prepared: PreparedInfer

  constructor(call: ServerCall, prepared: PreparedInfer) {
    this.#call = call
    this.#prepared = prepared
  }

  send(response: StepResponse): void {
    // It was answered, or its deadline was, or its client is gone.
    if (this.#call.isOver) return
    try {
      this.#call.end(encodeInferResponseFrame(toAnswer(response, this.#prepared)))
    } catch (error) {
      this.fail(ServeError.from(error))
    }
  }

  fail(error: ServeError): void {
    this.#call.refuse(error)
  }
}

/** The response as the client gets it: with classes where it asked for classes. */
export function toAnswer(response: StepResponse, prepared: PreparedInfer): InferResponseParts {
  const { model, request, outputs } = prepared
  const isClassified = outputs.some(({ classification }) => classification > 0)
  return {
    modelName: model.name,
    modelVersion: String(model.version),
    id: request.context.id,
    parameters: response.parameters,
    outputs: isClassified ? toClasses(response.outputs, outputs, model) : response.outputs,
  }
}
