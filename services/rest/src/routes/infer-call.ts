import { raceSignal } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { encodeRestResponse, HEADER_LENGTH_HEADER, type RestBody } from '@tutti/protocol'
import { onlyResponse, toClasses } from '@tutti/serving'
import type { NamedTensor, StepResponse } from '@tutti/tensor'
import { chooseEncoding, encodeReply } from '../answers/content-encoding.ts'
import { madeBytes } from '../answers/made-bytes.ts'
import type { RestReply } from '../answers/rest-reply.ts'
import { placeTensors } from '../call/placed-request.ts'
import type { RestCall } from '../call/rest-call.ts'

/** Answers `POST .../infer`. @param place - finds the tensors that are not in the body. */
export async function answerInfer(call: RestCall, place = placeTensors): Promise<RestReply> {
  const { model: name = '', version = '' } = call.parameters
  // The body first: a client that is refused while it still sends may never see the answer.
  const body = await call.body()
  const model = call.resolve(name, version)
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
  call.requestId = request.context.id
  call.charge(madeBytes(request, body))
  const placed = place(call, model, request)
  const isBinary = (output: string): boolean =>
    request.outputs.find((one) => one.name === output)?.isBinary ?? request.isBinaryOutput
  const encode = (response: StepResponse): RestBody | Promise<RestBody> => {
    const outputs = toClasses(response.outputs, request.outputs, model)
    const { parameters } = response
    const { id } = request.context
    const { name: modelName } = model
    const answer = { modelName, modelVersion: String(model.version), id, parameters, outputs }
    const parts = encodeRestResponse(answer, isBinary, placed.outputs)
    const giveBack = response.retain?.()
    if (giveBack === undefined) return call.encode(parts, outputs)
    return encodeLent(() => call.encode(parts, outputs), outputs, giveBack)
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
  const reply = { status: 200, ...encoded }
  if (encoding === 'identity') return reply
  const shorter = await encodeReply(reply, encoding)
  call.holdAnswer(shorter.byteLength)
  return shorter
}

async function encodeLent(
  encode: () => RestBody | Promise<RestBody>,
  outputs: readonly NamedTensor[],
  giveBack: () => void,
): Promise<RestBody> {
  try {
    return withOwnBytes(await encode(), outputs)
  } finally {
    giveBack()
  }
}

/** Binary outputs are parts of the body, which is sent after they are given back. */
function withOwnBytes(body: RestBody, outputs: readonly NamedTensor[]): RestBody {
  const lent = new Set(outputs.map(({ data }) => data))
  return {
    ...body,
    parts: body.parts.map((part) => (lent.has(part) ? new Uint8Array(part) : part)),
  }
}
