import { raceSignal } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { encodeRestResponse, HEADER_LENGTH_HEADER, type RestBody } from '@tutti/protocol'
import type { NamedTensor, StepResponse } from '@tutti/tensor'
import { onlyResponse } from '../only-response.ts'
import { toClasses } from '../request/classify.ts'
import { chooseEncoding, encodeReply } from './content-encoding.ts'
import { placeTensors } from './placed-request.ts'
import type { RestCall } from './rest-call.ts'
import type { RestReply } from './rest-reply.ts'

/** Answers `POST .../infer`. */
export async function answerInfer(call: RestCall): Promise<RestReply> {
  const { model: name = '', version = '' } = call.parameters
  // The body first: a client that is refused while it still sends may never see the answer.
  const body = await call.body()
  const model = call.backend.resolve(name, version)
  if (model.isDecoupled) {
    throw new ServeError(
      'UNSUPPORTED',
      "HTTP end point doesn't support models with decoupled transaction policy",
      { details: { model: name } },
    )
  }
  const request = await call.parse('infer', body, {
    headerLength: call.header(HEADER_LENGTH_HEADER),
    modelName: name,
    config: model.config,
  })
  const placed = placeTensors(call, model, request)
  const binary = new Map(request.outputs.map((output) => [output.name, output.isBinary]))
  const encode = async (response: StepResponse) => {
    const outputs = toClasses(response.outputs, request.outputs, model)
    const { parameters } = response
    const { id } = request.context
    const { name: modelName } = model
    const answer = { modelName, modelVersion: String(model.version), id, parameters, outputs }
    const parts = encodeRestResponse(
      answer,
      (output) => binary.get(output) ?? request.isBinaryOutput,
      placed.outputs,
    )
    const giveBack = response.retain?.()
    try {
      const encoded = await call.encode(parts, outputs)
      return giveBack === undefined ? encoded : withOwnBytes(encoded, outputs)
    } finally {
      giveBack?.()
    }
  }
  const { context } = request
  const requestedOutputs = request.outputs.map((output) => output.name)
  const infer = { context, inputs: placed.inputs, requestedOutputs }
  // An engine that cannot be interrupted must not hold the answer.
  const encoded = await raceSignal(
    onlyResponse(placed.model, infer, call.context, encode),
    call.context.signal,
  )
  call.holdAnswer(encoded.byteLength)
  const encoding = chooseEncoding(call.header('accept-encoding'))
  const reply = await encodeReply({ status: 200, ...encoded }, encoding)
  call.holdAnswer(reply.byteLength)
  return reply
}

/** Binary outputs are parts of the body, which is sent after they are given back. */
function withOwnBytes(body: RestBody, outputs: readonly NamedTensor[]): RestBody {
  const lent = new Set(outputs.map(({ data }) => data))
  return {
    ...body,
    parts: body.parts.map((part) => (lent.has(part) ? new Uint8Array(part) : part)),
  }
}
