import { type Clock, isTimeOver, openCallScope } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import {
  decodeInferRequest,
  encodeStreamResponseFrame,
  type InferRequestMessage,
  type InferResponse,
  NO_PARAMETERS,
  type StreamResponse,
} from '@tutti/protocol'
import { type ClientRequest, isRefusedBeforeWork, onlyResponse } from '@tutti/serving'
import type { Parameters, StepResponse } from '@tutti/tensor'
import type { ApartTensors } from '../call/apart-tensors.ts'
import type { MessageReceiver } from '../call/message-reader.ts'
import type { ServerCall } from '../call/server-call.ts'
import { type PreparedInfer, prepareInfer, toInferAnswer } from './infer-call.ts'
import { requireLive } from './method.ts'
import { SentResponses } from './sent-responses.ts'

/** Requests of one stream that are worked on at the same time; further ones are not read until one is answered. */
const MAX_OUTSTANDING = 64

/** A request of the stream, until it is answered. */
interface Asked {
  readonly message: InferRequestMessage
  readonly request: ClientRequest
  /** Bytes that count for it: its message, the objects made of it, and its typed contents once they are raw. */
  bytes: number
  /** Large tensors of the request. */
  readonly apart: ApartTensors | undefined
}

export interface InferStreamOptions {
  readonly call: ServerCall
  readonly clock: Clock
}

/**
 * One ModelStreamInfer. Requests are worked on at the same time; models that give one response are answered in the order
 * of the requests, decoupled models as their responses come (triton-semantics 4.8).
 */
export class InferStreamCall implements MessageReceiver {
  readonly #options: InferStreamOptions
  readonly #sent: SentResponses
  /** `triton_grpc_error`: the first error of a model ends the stream instead of standing in it. */
  readonly #isGrpcError: boolean
  /** Resolves when every ordered request so far is answered. */
  #turn: Promise<void> = Promise.resolve()
  /** Functions that begin the work on requests that were read. */
  readonly #received: (() => void)[] = []
  #isCopying = false
  #outstanding = 0
  #isEnded = false
  #isStopping = false

  constructor(o: InferStreamOptions) {
    this.#options = o
    this.#sent = new SentResponses(o.call)
    this.#isGrpcError = o.call.headers['triton_grpc_error'] === 'true'
  }

  /** Begins to read requests. */
  start(): void {
    const { call } = this.#options
    call.mayIdle = true
    call.splitTicket()
    call.whenStopping(() => {
      this.#isStopping = true
      call.pause(this)
      this.#finishIfDone()
    })
    call.read(this)
  }

  end(surplusBytes: number): void {
    if (surplusBytes > 0) {
      const text = `stream has ${surplusBytes} bytes after its last message, want none`
      throw new ServeError('MALFORMED_MESSAGE', text)
    }
    this.#isEnded = true
    this.#finishIfDone()
  }

  /**
   * Takes the next request. Bytes that are no ModelInferRequest have no id to answer, so they fail the whole stream; so does a
   * caller without access.
   */
  receive(bytes: Buffer): void {
    const request = this.#options.call.openRequest()
    try {
      this.#take(bytes, request)
    } catch (thrown) {
      const error = ServeError.from(thrown)
      request.ended(error)
      throw error
    }
  }

  #take(bytes: Buffer, request: ClientRequest): void {
    this.#options.call.backend.checkCaller?.()
    const apart = this.#options.call.reader?.apart
    const message = apart?.decode(bytes) ?? decodeInferRequest(bytes)
    const { madeBytes } = message
    this.#options.call.charge(madeBytes)
    this.#outstanding += 1
    if (this.#outstanding >= MAX_OUTSTANDING) this.#options.call.pause(this)
    const messageBytes = bytes.byteLength + (apart?.byteLength ?? 0)
    this.#options.call.reading.move(messageBytes, this.#options.call.ticket)
    const asked = { message, request, bytes: messageBytes + madeBytes, apart }
    this.#received.push(() => void this.#work(asked))
    this.#begin()
  }

  /** Begins waiting requests. Models get requests in their order, also if inputs of one are copied for a while. */
  #begin(): void {
    while (!this.#isCopying) {
      const work = this.#received.shift()
      if (work === undefined) return
      work()
    }
  }

  /** Holds further requests up until the model has this one. */
  async #awaitBegin({ placed }: PreparedInfer): Promise<void> {
    if (placed?.begun === undefined) return
    this.#isCopying = true
    await placed.begun
    this.#isCopying = false
    this.#begin()
  }

  async #work(asked: Asked): Promise<void> {
    const { call } = this.#options
    const { request } = asked
    try {
      if (call.isOver) request.failed(new ServeError('CANCELLED', 'the stream is over'))
      else await this.#answer(asked)
    } catch (thrown) {
      const error = ServeError.from(thrown)
      request.failed(error)
      call.fail(error)
    }
    request.ended()
    asked.apart?.end()
    call.release(asked.bytes)
    this.#outstanding -= 1
    // A stream may wait for its next request without limit: it holds no place meanwhile.
    if (this.#outstanding === 0) call.ticket.leave()
    if (!this.#isStopping) call.resume()
    this.#finishIfDone()
  }

  #finishIfDone(): void {
    const { call } = this.#options
    if (this.#outstanding > 0 || call.isOver) return
    if (this.#isEnded) call.end()
    else if (this.#isStopping) {
      call.fail(
        new ServeError(
          'SERVER_STOPPING',
          'GRPC server is shutting down and has stopped accepting new requests.',
        ),
      )
    }
  }

  /** Answers a request. It never rejects for an error of the request itself: that is an answer. */
  #answer(asked: Asked): Promise<void> {
    const prepared = this.#prepare(asked)
    const isDecoupled = !(prepared instanceof ServeError) && prepared.model.isDecoupled
    const answer = isDecoupled
      ? this.#stream(asked, prepared)
      : this.#one(asked, prepared, this.#turn)
    if (!isDecoupled) this.#turn = answer
    if (!(prepared instanceof ServeError)) void this.#awaitBegin(prepared)
    return answer
  }

  #prepare(asked: Asked): PreparedInfer | ServeError {
    try {
      const { call } = this.#options
      const { message, request } = asked
      requireLive(call.backend)
      call.ticket.enter()
      const { maxMessageBytes, backend } = call
      const found = request.resolve(backend, message.modelName, message.modelVersion)
      const model = asked.apart?.lendTo(found) ?? found
      const charge = (bytes: number): void => {
        call.charge(bytes)
        asked.bytes += bytes
      }
      return prepareInfer(message, model, { maxMessageBytes, backend, charge })
    } catch (error) {
      return ServeError.from(error)
    }
  }

  async #one(
    asked: Asked,
    prepared: PreparedInfer | ServeError,
    turn: Promise<void>,
  ): Promise<void> {
    // An answer that waits for its turn is counted, so it is encoded by now and nothing else of it is kept.
    const answer = prepared instanceof ServeError ? prepared : await this.#encodeOnly(prepared)
    await turn
    if (answer instanceof ServeError) await this.#sendError(asked, answer)
    else {
      this.#sent.send(answer)
      await this.#sent.ready()
    }
  }

  /** Executes a request for its only response. A function of its own: one that waits on would keep the tensors. */
  async #encodeOnly(prepared: PreparedInfer): Promise<Buffer | ServeError> {
    try {
      const { model, request } = prepared
      return await onlyResponse(model, request, this.#options.call.context, (response) =>
        this.#encode({ errorMessage: '', response: toFinalAnswer(response, prepared, true) }),
      )
    } catch (error) {
      return ServeError.from(error)
    }
  }

  /** Executes a request of a decoupled model; its responses go out as they come, and no faster than the client takes them. */
  #stream(asked: Asked, prepared: PreparedInfer): Promise<void> {
    const { call, clock } = this.#options
    const scope = openCallScope({ clock, parent: call.context.signal })
    const context = { ...call.context, signal: scope.context.signal }
    return new Promise<void>((resolve) => {
      let isOver = false
      const end = (last: Promise<void> | undefined): void => {
        isOver = true
        resolve(last)
      }
      const fail = (error: ServeError): void => {
        if (!isOver) end(this.#sendError(asked, error))
      }
      const send = (response: StepResponse): void => {
        if (isOver) return
        try {
          this.#sendResponse(response, prepared)
        } catch (error) {
          const refusal = ServeError.from(error)
          fail(refusal)
          // The model may have no end of its own: it hears that nobody reads on.
          return scope.cancel(refusal)
        }
        if (response.final) end(this.#sent.ready())
      }
      const ready = () => (isOver ? undefined : this.#sent.ready())
      prepared.model.execute(prepared.request, { send, fail, ready }, context)
    }).finally(() => scope.close())
  }

  /** @throws ServeError OVERLOADED */
  #sendResponse(response: StepResponse, prepared: PreparedInfer): void {
    const isEmpty = response.final && response.outputs.length === 0
    if (isEmpty && !prepared.isEmptyFinalWanted) return
    const answer = toFinalAnswer(response, prepared, response.final)
    this.#sent.send(this.#encode({ errorMessage: '', response: answer }))
  }

  async #sendError({ message, request }: Asked, error: ServeError): Promise<void> {
    const { call, clock } = this.#options
    request.failed(error)
    call.logFailure(error, message.id)
    const isModelError = !isRefusedBeforeWork(error)
    // The model's timer may fire before the call's. The time is over for the stream as a whole, not for this request alone.
    const isLate = error.reason === 'DEADLINE_EXCEEDED' && isTimeOver(call.context, clock)
    if (isLate || (this.#isGrpcError && isModelError)) return call.fail(error)
    const response = {
      modelName: isModelError ? message.modelName : '',
      modelVersion: isModelError ? message.modelVersion : '',
      id: message.id,
      parameters: isModelError ? finalFlag(NO_PARAMETERS, true) : NO_PARAMETERS,
      outputs: [],
    }
    this.#sent.send(this.#encode({ errorMessage: error.message, response }))
    await this.#sent.ready()
  }

  /** Encodes a message, which is counted until it is sent. @throws ServeError OVERLOADED */
  #encode(message: StreamResponse): Buffer {
    const frame = encodeStreamResponseFrame(message)
    this.#options.call.charge(frame.byteLength)
    return frame
  }
}

function finalFlag(parameters: Parameters, isFinal: boolean): Parameters {
  return new Map([...parameters, ['triton_final_response', { kind: 'bool', value: isFinal }]])
}

function toFinalAnswer(
  response: StepResponse,
  prepared: PreparedInfer,
  isFinal: boolean,
): InferResponse {
  const answer = toInferAnswer(response, prepared)
  return { ...answer, parameters: finalFlag(answer.parameters, isFinal) }
}
