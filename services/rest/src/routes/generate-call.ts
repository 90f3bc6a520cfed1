import { type CallScope, openCallScope, systemClock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { modelMetadata } from '@tutti/model-config'
import { encodeGenerateResponse, type GenerateRequest, type RestBody } from '@tutti/protocol'
import { isRefusedBeforeWork, type ResolvedModel } from '@tutti/serving'
import type { StepResponse } from '@tutti/tensor'
import { madeBytes } from '../answers/made-bytes.ts'
import { ResponseQueue } from '../answers/response-queue.ts'
import { errorReply, isModelError, jsonReply, type RestReply } from '../answers/rest-reply.ts'
import type { RestCall } from '../call/rest-call.ts'

const EVENT_TYPE = 'text/event-stream; charset=utf-8'
const EVENT_BEGIN = Buffer.from('data: ')
const EVENT_END = Buffer.from('\n\n')

const NOT_ONE =
  'generate expects model to produce exactly 1 response, use generate stream for model that generates various number of responses'

/** Answers `POST .../generate`: 200 with an error in the body unless the model gives one response (triton-semantics 9.15). */
export async function answerGenerate(call: RestCall): Promise<RestReply> {
  const generation = await Generation.begin(call)
  try {
    const body = await generation.next()
    const isOne = body !== undefined && !(await generation.hasNext())
    if (!isOne) call.failed(new ServeError('UNSUPPORTED', NOT_ONE))
    const reply = isOne ? { status: 200, ...body } : jsonReply({ error: NOT_ONE })
    call.holdAnswer(reply.byteLength)
    return reply
  } catch (error) {
    const failure = ServeError.from(error)
    call.failed(failure)
    return modelErrorReply(failure)
  } finally {
    generation.close()
  }
}

/** Answers `POST .../generate_stream` with an event for each response; the first one decides the status. */
export async function answerGenerateStream(call: RestCall): Promise<RestReply> {
  const generation = await Generation.begin(call)
  const headers = { 'content-type': EVENT_TYPE }
  try {
    const first = await generation.next()
    return {
      status: 200,
      headers,
      parts: [],
      byteLength: 0,
      more: eventsOf(call, generation, first),
    }
  } catch (error) {
    generation.close()
    const failure = ServeError.from(error)
    call.failed(failure)
    const reply = modelErrorReply(failure)
    if (isRefusedBeforeWork(failure)) return reply
    const parts = toEvent(reply.parts)
    const byteLength = reply.byteLength + EVENT_BEGIN.byteLength + EVENT_END.byteLength
    return { ...reply, headers: { ...reply.headers, ...headers }, parts, byteLength }
  }
}

/** Never throws: what fails in the middle is an event. */
async function* eventsOf(
  call: RestCall,
  generation: Generation,
  first: RestBody | undefined,
): AsyncGenerator<readonly Uint8Array[]> {
  try {
    for (let body = first; body !== undefined; body = await generation.next()) {
      generation.offer(true)
      yield toEvent(body.parts)
      generation.offer(false)
      generation.sent()
    }
  } catch (error) {
    const failure = ServeError.from(error)
    call.failed(failure)
    yield toEvent(modelErrorReply(failure).parts)
  } finally {
    generation.close()
  }
}

function toEvent(parts: readonly Uint8Array[]): readonly Uint8Array[] {
  return [EVENT_BEGIN, ...parts, EVENT_END]
}

/** As Triton: an error of the model is 400 here, whatever its code, and JSON. What clients may try again keeps its own status. */
function modelErrorReply(error: ServeError): RestReply {
  const reply = errorReply(error)
  if (!isModelError(error)) return reply
  const status = error.code === 'UNAVAILABLE' ? reply.status : 400
  return { ...reply, status, headers: { ...reply.headers, 'content-type': 'application/json' } }
}

/** One request of `generate` in execution. */
class Generation {
  readonly #call: RestCall
  readonly #model: ResolvedModel
  readonly #request: GenerateRequest
  readonly #scope: CallScope
  readonly #queue: ResponseQueue

  private constructor(call: RestCall, model: ResolvedModel, request: GenerateRequest) {
    this.#call = call
    this.#model = model
    this.#request = request
    call.requestId = request.context.id
    this.#scope = openCallScope({ clock: systemClock, parent: call.context.signal })
    const { signal } = this.#scope.context
    this.#queue = new ResponseQueue({ signal, charge: (bytes) => call.charge(bytes) })
    // Also if its answer is never begun.
    signal.addEventListener('abort', () => this.#queue.close(), { once: true })
    const { context, inputs } = request
    const infer = { context, inputs, requestedOutputs: [] }
    model.execute(infer, this.#queue, { ...call.context, signal })
  }

  /** Reads the request and begins to execute it. @throws ServeError */
  static async begin(call: RestCall): Promise<Generation> {
    const { model: name = '', version = '' } = call.parameters
    // The body first: a client that is refused while it still sends may never see the answer.
    const body = await call.body()
    const model = call.resolve(name, version)
    const { inputs } = modelMetadata(model.config, [])
    const request = await call.parse('generate', body, { inputs })
    call.charge(madeBytes(request, body))
    return new Generation(call, model, request)
  }

  /** The next response, written; undefined after the last one. @throws ServeError */
  async next(): Promise<RestBody | undefined> {
    return this.#queue.next((response) => this.#encode(response))
  }

  /** The model has given more than what was read, be it an error. */
  async hasNext(): Promise<boolean> {
    try {
      return (await this.#queue.next(() => Promise.resolve(true))) ?? false
    } catch (error) {
      if (this.#scope.context.signal.aborted) throw error
      return true
    }
  }

  /** Says whether the response that was read waits for the client, or the client has it. */
  offer(isWaiting: boolean): void {
    this.#call.offer(isWaiting)
  }

  /** The client has what was read: its bytes no longer count. */
  sent(): void {
    this.#call.releaseAnswer()
  }

  /** Ends the execution if it goes on. */
  close(): void {
    this.#scope.cancel(new ServeError('CANCELLED', 'the client reads no further responses'))
    this.#scope.close()
    this.#queue.close()
  }

  async #encode(response: StepResponse): Promise<RestBody> {
    const { name: modelName, version, isDecoupled } = this.#model
    const { outputs, parameters } = response
    const { id } = this.#request.context
    // The responses of a model that is not decoupled are dropped beyond its first.
    if (!isDecoupled) this.#queue.end()
    const answer = { modelName, modelVersion: String(version), id, parameters, outputs }
    return this.#call.encode(encodeGenerateResponse(answer), outputs)
  }
}
