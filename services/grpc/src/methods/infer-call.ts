import { ServeError } from '@tutti/errors'
import {
  decodeInferRequest,
  encodeInferResponseFrame,
  encodeInferResponsePieces,
  type InferRequestMessage,
  type InferResponse,
  LEAST_PIECE_BYTES,
} from '@tutti/protocol'
import {
  decoupledModel,
  type InputSource,
  missingData,
  type PlacedInputs,
  placedData,
  placeOutputs,
  type RequestedOutput,
  type ResolvedModel,
  readGivenParameters,
  readRequestedOutputs,
  refuseDuplicates,
  toClasses,
  typedData,
  unknownDatatype,
} from '@tutti/serving'
import {
  DATATYPE_BY_NAME,
  EMPTY_CONTEXT,
  type InferRequest,
  type NamedTensor,
  type ResponseSink,
  type StepResponse,
} from '@tutti/tensor'
import type { ServerCall } from '../call/server-call.ts'

/** Bytes of the objects of most requests: less than each place of `--max-inflight-requests` costs anyway. */
const USUAL_MADE_BYTES = 8192

/** A request that was read and resolved, but not yet executed. */
export interface PreparedInfer {
  readonly model: ResolvedModel
  readonly request: InferRequest
  readonly outputs: readonly RequestedOutput[]
  /** True if a stream delivers an empty final response too; else it leaves that out. */
  readonly isEmptyFinalWanted: boolean
  readonly placed: PlacedInputs | undefined
}

/**
 * Serves a ModelInfer call. An accepted call is answered even if the process began to shut down while the message came.
 */
export function serveInfer(call: ServerCall): void {
  call.beOneRequest()
  call.readOne(inferOnce)
}

function inferOnce(bytes: Buffer, call: ServerCall): void {
  let prepared: PreparedInfer
  let message: InferRequestMessage | undefined
  try {
    const apart = call.reader?.apart
    message = apart?.decode(bytes) ?? decodeInferRequest(bytes)
    if (message.madeBytes > USUAL_MADE_BYTES) call.charge(message.madeBytes)
    const model = call.resolve(message.modelName, message.modelVersion)
    if (model.isDecoupled) throw decoupledModel(model.name)
    prepared = prepareInfer(message, apart?.lendTo(model) ?? model, call)
  } catch (error) {
    return call.refuse(ServeError.from(error), message?.id)
  }
  prepared.model.execute(prepared.request, new OnlyAnswer(call, prepared), call.context)
}

/** Reads a request against its model, in the order of triton-semantics 4.6. @throws ServeError with Triton's text. */
export function prepareInfer(
  message: InferRequestMessage,
  model: ResolvedModel,
  call: InputSource['call'],
): PreparedInfer {
  const { id, parameters, outputs: asked } = message
  const { context, isEmptyFinalWanted } =
    parameters.size === 0
      ? { context: { ...EMPTY_CONTEXT, id }, isEmptyFinalWanted: false }
      : readGivenParameters(id, parameters)
  const source: InputSource = { message, model, call }
  const inputs = readInputs(source)
  const outputs = asked.length === 0 ? [] : readRequestedOutputs(asked, call.backend)
  const request = { context, inputs, requestedOutputs: outputs.map(({ name }) => name) }
  const { placed } = source
  const served = placed || asked.length > 0 ? placeOutputs(model, outputs, placed) : model
  return { model: served, request, outputs, isEmptyFinalWanted, placed }
}

/**
 * Gives each input its bytes, by the rules of triton-semantics 4.7: raw entries in order, views of the message, or typed contents
 * made raw.
 */
function readInputs(source: InputSource): readonly NamedTensor[] {
  const { inputs, rawInputContents } = source.message
  if (inputs.length > 1) refuseDuplicates(source)
  let entry = 0
  const tensors: NamedTensor[] = []
  let invalid: string | undefined
  for (const input of inputs) {
    const { name, datatype, shape, parameters, contents } = input
    let data = parameters.size > 0 ? placedData(source, input) : undefined
    if (contents !== undefined) data = typedData(source, input, contents)
    else data ??= rawInputContents[entry++]
    if (data === undefined) throw missingData(source, name)
    const known = DATATYPE_BY_NAME.get(datatype)
    if (known === undefined) invalid ??= name
    else tensors.push({ name, datatype: known, shape, data })
  }
  if (invalid !== undefined) throw unknownDatatype(source, invalid)
  return tensors
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
      const answer = toInferAnswer(response, this.#prepared)
      const isLarge = answer.outputs.some(({ data }) => data.byteLength >= LEAST_PIECE_BYTES)
      if (isLarge && this.#call.answer === this.#call.stream) {
        this.#call.end(encodeInferResponsePieces(answer), response.retain)
      } else this.#call.end([encodeInferResponseFrame(answer)])
    } catch (error) {
      this.fail(ServeError.from(error))
    }
  }

  fail(error: ServeError): void {
    this.#call.refuse(error, this.#prepared.request.context.id)
  }
}

/** Makes the answer of a response. Outputs for which the client asked for classification become classes. */
export function toInferAnswer(response: StepResponse, prepared: PreparedInfer): InferResponse {
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
