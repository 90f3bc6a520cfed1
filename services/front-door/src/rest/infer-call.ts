import { raceSignal } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import {
  decodeRestRequest,
  encodeRestResponse,
  HEADER_LENGTH_HEADER,
  type RestInferRequest,
} from '@tutti/protocol'
import type { InferResponse, ResolvedModel } from '../inference-backend.ts'
import { classifyOutputs } from '../request/read-request.ts'
import { chooseEncoding, encodeReply } from './content-encoding.ts'
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
  const headerLength = call.header(HEADER_LENGTH_HEADER)
  const request = decodeRestRequest({
    body,
    modelName: name,
    config: model.config,
    ...(headerLength === undefined ? {} : { headerLength }),
  })
  const response = await onlyResponse(model, request, call)
  const binary = new Map(request.outputs.map((output) => [output.name, output.isBinary]))
  const encoded = encodeRestResponse(
    { ...response, outputs: classifyOutputs(response.outputs, request.outputs, model) },
    (output) => binary.get(output) ?? request.isBinaryOutput,
  )
  call.holdAnswer(encoded.byteLength)
  const encoding = chooseEncoding(call.header('accept-encoding'))
  const reply = await encodeReply({ status: 200, ...encoded }, encoding)
  call.holdAnswer(reply.byteLength)
  return reply
}

/**
 * Executes the request and takes its response. An empty final response after the data is part of a correct sequence;
 * a second one with data is not.
 */
async function onlyResponse(
  model: ResolvedModel,
  request: RestInferRequest,
  call: RestCall,
): Promise<InferResponse> {
  const { context } = call
  const responses = model.infer(request, context)[Symbol.asyncIterator]()
  const data: InferResponse[] = []
  try {
    for (;;) {
      const next = await raceSignal(responses.next(), context.signal)
      if (next.done === true) break
      if (next.value.outputs.length > 0 || data.length === 0) data.push(next.value)
      else if (!next.value.final) data.push(next.value)
      if (next.value.final || data.length > 1) break
    }
  } finally {
    abandon(responses)
  }
  const [only] = data
  if (only !== undefined && data.length === 1) return only
  throw new ServeError(
    'RESPONSE_INVALID',
    `expected a single response, got ${data.length === 0 ? 'none' : 'several'}`,
  )
}

/** Ends the sequence without waiting: an engine that cannot be interrupted must not hold the answer. */
function abandon(responses: AsyncIterator<InferResponse>): void {
  responses.return?.().catch(() => {
    // The request has been answered; what goes wrong while its sequence ends has nobody to be told to.
  })
}
