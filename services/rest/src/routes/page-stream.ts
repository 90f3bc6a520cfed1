import { openCallScope, systemClock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import {
  encodeRestResponse,
  HEADER_LENGTH_HEADER,
  type RestBody,
  type RestInferRequest,
} from '@tutti/protocol'
import { observeModel } from '@tutti/serving'
import { StepSpans, withoutInner } from '@tutti/telemetry'
import type { StepResponse } from '@tutti/tensor'
import { ResponseQueue } from '../answers/response-queue.ts'
import type { RestReply } from '../answers/rest-reply.ts'
import { refusePlaces } from '../call/placed-request.ts'
import type { RestCall } from '../call/rest-call.ts'

/**
 * Answers `POST .../stream` of a page. The request is one of `infer`; each response is sent as it comes, and the model waits
 * while the page does not read.
 *
 * The answer is a sequence of frames. A frame has two little-endian numbers of 32 bits, the bytes of its JSON and of its binary
 * outputs, then both, as in an answer of `infer`. A failure is a frame with `error` and `reason`. The last frame has `steps`,
 * the `RecordedSteps`.
 */
export async function answerPageStream(call: RestCall): Promise<RestReply> {
  const { model: name = '', version = '' } = call.parameters
  const body = await call.body()
  const model = call.resolve(name, version)
  const request = await call.parse('infer', body, {
    headerLength: call.header(HEADER_LENGTH_HEADER),
    modelName: name,
    config: model.config,
  })
  const { inputs } = refusePlaces(call, model, request)
  const headers = { 'content-type': 'application/octet-stream' }
  const more = framesOf(call, model, { ...request, inputs })
  return { status: 200, headers, parts: [], byteLength: 0, more }
}

type Model = ReturnType<RestCall['backend']['resolve']>

const isAnyOutput = (): boolean => true

/** Never throws: what fails is a frame. */
async function* framesOf(
  call: RestCall,
  model: Model,
  request: RestInferRequest,
): AsyncGenerator<readonly Uint8Array[]> {
  const spans = new StepSpans(systemClock)
  const scope = openCallScope({ clock: systemClock, parent: call.context.signal })
  const { signal } = scope.context
  const queue = new ResponseQueue({ signal, charge: (bytes) => call.charge(bytes) })
  const recorded = observeModel(model, spans, { clock: systemClock })
  const { context, inputs } = request
  const encode = async ({ outputs, parameters }: StepResponse): Promise<RestBody> => {
    const { name: modelName, version } = model
    const answer = { modelName, modelVersion: String(version), id: context.id, parameters, outputs }
    const whole = await call.encode(encodeRestResponse(answer, isAnyOutput), outputs)
    // Binary outputs are lent until here.
    return { ...whole, parts: whole.parts.map((part) => new Uint8Array(part)) }
  }
  try {
    recorded.execute({ context, inputs, requestedOutputs: [] }, queue, { ...call.context, signal })
    for (;;) {
      const response = await queue.next(encode)
      if (response === undefined) break
      call.offer(true)
      yield toFrame(response)
      call.offer(false)
      call.releaseAnswer()
    }
  } catch (error) {
    const failure = ServeError.from(error)
    call.failed(failure)
    const { message, reason } = failure
    yield jsonFrame({ error: message, reason })
  } finally {
    scope.cancel(new ServeError('CANCELLED', 'the page reads no further responses'))
    scope.close()
    queue.close()
  }
  const steps = spans.read()
  yield jsonFrame({ steps: call.backend.identity === undefined ? steps : withoutInner(steps) })
}

function toFrame({ headers, parts, byteLength }: RestBody): readonly Uint8Array[] {
  const jsonBytes = Number(headers[HEADER_LENGTH_HEADER] ?? byteLength)
  const head = Buffer.alloc(8)
  head.writeUInt32LE(jsonBytes, 0)
  head.writeUInt32LE(byteLength - jsonBytes, 4)
  return [head, ...parts]
}

function jsonFrame(value: unknown): readonly Uint8Array[] {
  const json = Buffer.from(JSON.stringify(value))
  return toFrame({ headers: {}, parts: [json], byteLength: json.byteLength })
}
